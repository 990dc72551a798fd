"""What the experiments on speed, speculation and protocol are asked with."""

from __future__ import annotations

from dataclasses import replace

from a40console.model.experiment import Experiment, Parameter

_REPEATS = Parameter(
    name="repeats",
    kind="whole",
    help="How often every arm is measured; intervals rest on repeats.",
    default=3,
    presets={"quick": 1, "full": 5},
    least=1,
    most=20,
)

_REQUESTS = Parameter(
    name="requests",
    kind="whole",
    help="Measured requests of each stream, one after the other; one before them warms up.",
    default=2,
    presets={"quick": 1},
    least=1,
    most=50,
)

_OUTPUT_TOKENS = Parameter(
    name="output_tokens",
    kind="whole",
    help="Tokens of every answer; the same for all.",
    default=256,
    presets={"quick": 64, "full": 512},
    least=8,
    most=32_768,
    unit="tokens",
)

_DEPTH = Parameter(
    name="depth",
    kind="whole",
    help="Drafted tokens a pass; 0 is as deep as the engine was started for.",
    default=0,
    least=0,
    most=64,
    unit="tokens",
)

SWEEP = Experiment(
    name="sweep",
    title="Concurrency sweep",
    question="How many tokens a second do so many streams get, and up to where do more pay?",
    parameters=(
        Parameter(
            name="streams",
            kind="wholes",
            help="Streams at once, one step each.",
            default=(1, 2, 4, 8, 16, 32),
            presets={"quick": (1, 2, 4), "full": (1, 2, 4, 8, 16, 32, 64)},
            least=1,
            most=512,
        ),
        _OUTPUT_TOKENS,
        Parameter(
            name="prompt_tokens",
            kind="whole",
            help="≈ tokens of every prompt; each begins differently, so none is served from cache.",
            default=128,
            presets={"quick": 64},
            least=32,
            most=200_000,
            unit="tokens",
        ),
        replace(_REQUESTS, presets={"quick": 1, "full": 3}),
        _REPEATS,
    ),
    presets={
        "quick": "1, 2 and 4 streams once: whether silicon idles at one stream; no verdict",
        "standard": "1 to 32 streams, three times",
        "full": "1 to 64 streams, five times, with long answers",
    },
)

REGIMES = Experiment(
    name="regimes",
    title="Speculation by regime",
    question="Which speculation setting wins for which kind of text, at how many streams?",
    parameters=(
        Parameter(
            name="regimes",
            kind="choices",
            help="prose: an answer that its prompt does not hold; code-edit: one that repeats it.",
            default=("prose", "code-edit"),
            choices=("prose", "code-edit"),
        ),
        Parameter(
            name="settings",
            kind="choices",
            help="off: an engine started without speculation (restarts ours, twice); "
            "off-live: turned off as it runs; on: at the depths.",
            default=("off", "off-live", "on"),
            presets={"quick": ("off-live", "on")},
            choices=("off", "off-live", "on"),
        ),
        replace(_DEPTH, name="depths", kind="wholes", default=(0,)),
        Parameter(
            name="scan",
            kind="yes",
            help="Also at a half and a quarter of the deepest.",
            default=True,
            presets={"quick": False},
        ),
        Parameter(
            name="streams",
            kind="wholes",
            help="Streams at once.",
            default=(1, 4),
            presets={"quick": (1,), "full": (1, 2, 4, 8)},
            least=1,
            most=64,
        ),
        replace(_OUTPUT_TOKENS, presets={"quick": 96, "full": 512}, least=16, most=4096),
        _REQUESTS,
        _REPEATS,
    ),
    presets={
        "quick": "on against off-live, one stream, once: no restart and no verdict",
        "standard": "off, off-live and three depths, 1 and 4 streams, three times; two restarts",
        "full": "the same at 1 to 8 streams, five times, with long answers",
    },
)

LOSSLESS = Experiment(
    name="lossless",
    title="Is speculation lossless?",
    question="Does the engine write the same with speculation as without, greedily, on code?",
    parameters=(
        Parameter(
            name="probes",
            kind="whole",
            help="How many of our code-dense probes are asked.",
            default=12,
            presets={"quick": 6},
            least=1,
            most=12,
        ),
        replace(
            _OUTPUT_TOKENS, default=96, presets={"quick": 64, "full": 256}, least=16, most=2048
        ),
        Parameter(
            name="baseline",
            kind="choice",
            help="off-live: turned off as it runs; off: an engine started without (restarts ours); "
            "auto: off-live where the engine can, else off.",
            default="auto",
            presets={"full": "off"},
            choices=("auto", "off-live", "off"),
        ),
        _DEPTH,
    ),
    presets={
        "quick": "six probes, with the baseline that the engine can do",
        "standard": "twelve probes, with the baseline that the engine can do",
        "full": "twelve probes with long answers against an engine started without; two restarts",
    },
)

PROTOCOL = Experiment(
    name="protocol",
    title="Messages protocol",
    question="Does the endpoint speak the Messages API as Claude Code needs it?",
    parameters=(
        replace(
            _OUTPUT_TOKENS, help="The most tokens of an answer.", presets={}, least=32, most=4096
        ),
    ),
    presets={
        "quick": "the five checks of the Messages API",
        "standard": "the five checks of the Messages API",
        "full": "the five checks of the Messages API",
    },
)

CANARY = Experiment(
    name="canary",
    title="Canary",
    question="Is what the engine writes sound: code, a tool's call, a prompt asked twice?",
    parameters=(),
    presets={
        "quick": "the checks that every start and switch must stand",
        "standard": "the checks that every start and switch must stand",
        "full": "the checks that every start and switch must stand",
    },
)
