"""Engines: their command lines, processes, weights, logs, starts and ends."""
