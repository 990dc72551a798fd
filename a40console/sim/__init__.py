"""A simulated engine: vLLM's HTTP surface over a model of an A40's speed; started as a process."""
