"""The Textual console: a disposable client of the service."""
