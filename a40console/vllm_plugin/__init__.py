"""What runs inside the engine's own process: vLLM's requests, told row by row.

The folder is copied out as the package ``a40console_vllm`` into the engine's path. It needs the
standard library and what vLLM itself brings, and its modules name each other relatively.
"""
