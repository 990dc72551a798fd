"""The process that owns the engine, the gateway and the telemetry, and how others reach it."""
