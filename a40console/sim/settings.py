"""The command line: vLLM's flags as far as the console gives them, and the simulation's own."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from a40console.sim.core import Options
from a40console.sim.faults import KINDS, Faults
from a40console.sim.script import Script
from a40console.sim.sheets import (
    DEFAULT_BATCHED_TOKENS,
    SHEETS,
    SPECULATION_BATCHED_TOKENS,
    ModelSheet,
    sheet_for,
)

VERSION = "0.33.0+sim"
"""The version of vLLM that is imitated; whoever reads it sees what it is."""

START_S = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How this engine was started."""

    sheet: ModelSheet
    served_name: str
    words: argparse.Namespace
    """As they were given."""

    options: Options
    faults: Faults
    socket_path: Path | None
    host: str
    port: int
    start_s: float
    """Seconds of a start that reads its weights and compiles; a real one takes minutes."""

    manual: bool
    """Whether time passes only when it is told to, through the control route."""

    lowered: bool
    """Whether speculation lowered the batched tokens, as vLLM does unless it is told a number."""

    speculation: dict[str, Any] | None
    script: Script
    """What the model is told to say."""

    def non_default(self) -> dict[str, Any]:
        """The arguments as vLLM echoes them in its first lines."""
        ours = ("speed", "start_s", "fault", "script", "manual_clock", "command", "seed")
        given = {name: value for name, value in vars(self.words).items() if name not in ours}
        kept = {name: value for name, value in given.items() if value not in (None, False, [])}
        return {
            name: str(value) if isinstance(value, Path) else value for name, value in kept.items()
        }


def parser() -> argparse.ArgumentParser:
    """The flags; what vLLM does not know is refused in its words."""
    flags = argparse.ArgumentParser(prog="vllm", allow_abbrev=False)
    flags.add_argument("command", choices=["serve"])
    flags.add_argument("model", help=f"one of {', '.join(SHEETS)}, whatever stands around it")
    flags.add_argument("--served-model-name")
    flags.add_argument("--uds", type=Path)
    flags.add_argument("--host", default="127.0.0.1")
    flags.add_argument("--port", type=int, default=8000)
    numbers = (
        "max-model-len",
        "max-num-seqs",
        "max-num-batched-tokens",
        "num-gpu-blocks-override",
        "tensor-parallel-size",
    )
    for name in numbers:
        flags.add_argument(f"--{name}", type=int)
    flags.add_argument("--gpu-memory-utilization", type=float)
    for name in ("kv-cache-dtype", "quantization", "tool-call-parser", "reasoning-parser"):
        flags.add_argument(f"--{name}")
    for name in ("enable-prefix-caching", "async-scheduling", "enforce-eager"):
        flags.add_argument(f"--{name}", action=argparse.BooleanOptionalAction)
    for name in (
        "enable-auto-tool-choice",
        "enable-prompt-tokens-details",
        "enable-request-id-headers",
        "enable-mfu-metrics",
        "enable-sleep-mode",
    ):
        flags.add_argument(f"--{name}", action="store_true")
    flags.add_argument("--disable-access-log-for-endpoints")
    flags.add_argument("--worker-extension-cls")
    flags.add_argument("--speculative-config", "-sc", type=json.loads)
    _own(flags.add_argument_group("simulation"))
    return flags


def _own(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--seed", type=int, default=0)
    group.add_argument("--speed", type=float, default=1.0, help="times faster than the model")
    group.add_argument("--start-s", type=float, default=START_S, help="seconds of a start")
    group.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="NAME[=ARG]",
        help="; ".join(f"{name}: {text}" for name, text in KINDS.items()).replace("%", "%%"),
    )
    group.add_argument("--script", type=Path, help="rules in JSON for what the model says")
    group.add_argument("--manual-clock", action="store_true", help="time passes when it is told to")


def parse(arguments: list[str]) -> Settings:
    """The settings; ends the process with vLLM's code and words where they make no sense."""
    flags = parser()
    words = flags.parse_args(arguments)
    try:
        sheet = sheet_for(words.model)
        faults = Faults.parse(words.fault)
        script = Script.read(words.script) if words.script else Script()
    except KeyError:
        flags.error(f"nothing was measured of {words.model}: there are {', '.join(SHEETS)}")
    except argparse.ArgumentTypeError as error:
        flags.error(f"argument --fault or --script: {error}")
    if words.speed <= 0 or words.start_s < 0:
        flags.error("argument --speed: must be more than 0, and --start-s not negative")
    speculation = words.speculative_config
    lowered = speculation is not None and words.max_num_batched_tokens is None
    return Settings(
        sheet=sheet,
        served_name=words.served_model_name or sheet.name,
        words=words,
        options=_options(words, sheet, lowered=lowered),
        faults=faults,
        socket_path=words.uds,
        host=words.host,
        port=words.port,
        start_s=words.start_s / words.speed,
        manual=words.manual_clock,
        lowered=lowered,
        speculation=speculation,
        script=script,
    )


def _options(words: argparse.Namespace, sheet: ModelSheet, *, lowered: bool) -> Options:
    speculation = words.speculative_config or {}
    batched = SPECULATION_BATCHED_TOKENS if lowered else words.max_num_batched_tokens
    caching = words.enable_prefix_caching
    return Options(
        max_model_len=words.max_model_len or sheet.max_model_len,
        max_running=words.max_num_seqs or 256,
        batched_tokens=batched or DEFAULT_BATCHED_TOKENS,
        depth=int(speculation.get("num_speculative_tokens", 0)),
        prefix_caching=sheet.caches_by_itself if caching is None else caching,
        eager=bool(words.enforce_eager),
        kv_blocks=words.num_gpu_blocks_override,
        speed=words.speed,
        seed=words.seed,
    )
