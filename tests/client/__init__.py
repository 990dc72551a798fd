"""The real Claude Code against the gateway, in a network that holds nothing but loopback."""
