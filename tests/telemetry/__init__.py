"""Telemetry against recorded expositions, simulated engines and one real engine."""
