"""The one network listener: requests pass to the engine unchanged, counted on their way."""
