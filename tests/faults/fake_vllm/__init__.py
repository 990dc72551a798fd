"""A process that answers like `vllm serve`, and goes wrong like it when told to.

Standard library only. How it behaves stands in the JSON file that FAKE_VLLM_CONTROL names, and is
read again and again, so that a test can change it under a running engine. Its keys, with what they
are without one:

start       `ready`, or `waits` for an engine core for ever, or `nccl`: hangs in NCCL for ever, or
            `fails` with `code`
ready_s     0.2: seconds until it serves
code        1: exit code of a start that fails
exit        null: a number ends the server alone, at once, with that code
abort       false: all of it crashes with SIGABRT while it answers a request
stop_s      0: seconds that its end takes, of server and core alike
dies_with_core  false: the server ends when it finds its core dead
oom         false: the server takes memory until the kernel ends it
deaf        []: who ignores SIGTERM: `server`, `core`, `worker`
workers     0: a chain of so many processes below the core, each in a session of its own
health      200: status of /health; `never` does not answer
rate        40.0: tokens a second while a request runs, of its own or pretended
running     0: requests that are pretended to run, beside the real ones
waiting     0: requests that are pretended to wait
frozen      false: no token comes out any more
epoch       0: a change lets every counter begin again
burn        false: the core keeps a CPU busy
metrics     `ok`, `empty`, `error`, `html`, `json`, `cut`, `moved`, `abroad`, `locked`, `slow`
names       `new`, `old`, `both` or `none`: how the prefix cache's counters are called
created     true: the `_created` series that vLLM exposes
odd         {}: the value of series, by the beginning of their names: `NaN`, `+Inf`
hit         0.75: share of a prompt's tokens that the prefix cache holds
ttft        [0.03]: first tokens take these seconds, in equal shares
log_rates   []: what each API server logs as its throughput, every five seconds
"""
