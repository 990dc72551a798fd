"""Controlled experiments on an engine: what is asked, measured at the socket, concluded."""
