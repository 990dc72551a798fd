"""A terminal console that runs, watches and steers LLM engines."""

__version__ = "0.1.0"
