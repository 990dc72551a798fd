"""Anthropic's Messages API as it passes through the gateway."""
