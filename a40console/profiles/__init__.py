"""Profiles: what is asked of an engine, shipped or the operator's own, one TOML file each."""
