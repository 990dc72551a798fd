"""Widgets that paint lines and repaint only what changed."""
