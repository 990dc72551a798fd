"""What is measured: the engine, the GPUs and the container, one source a file."""
