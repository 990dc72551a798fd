"""The link to another machine's service, through the system's own ssh."""
