"""Environments of their own for vLLM: found, planned, installed, removed."""
