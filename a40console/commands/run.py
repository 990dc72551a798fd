"""`a40console run EXPERIMENT`: a controlled experiment, planned, queued, followed to its end."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from a40console.commands.acting import act, print_result
from a40console.commands.asking import confirm, yes_option
from a40console.commands.invocation import Invocation, json_option
from a40console.commands.number import NumberRange
from a40console.commands.output import (
    echo_text,
    note,
    print_json,
    print_lines,
    stderr_is_terminal,
    text_width,
)
from a40console.commands.progress import Progress
from a40console.commands.run_progress import follow
from a40console.commands.run_text import conclusion
from a40console.commands.run_words import parameter_help, plan_lines
from a40console.commands.running import ensure_service
from a40console.commands.serving import serving_engine
from a40console.errors import Exit, NotServingError, RefusedError, UsageError
from a40console.model.codec import encode
from a40console.model.experiment import MOST_MINUTES, MOST_USD, PRESETS, Experiment
from a40console.model.figures import Missing
from a40console.model.run import Run, RunSpec, RunTarget, TargetKind
from a40console.service.client import ServiceClient

KEY_VARIABLE = "A40CONSOLE_TARGET_TOKEN"
"""Holds the key of a URL's server: a key never belongs on a command line."""

PLAN_HELP = "Say what it takes, and start no run and no engine: the service, if need be."
WAYS = "--when idle waits until nobody works; --yes accepts what it does."

CHECKS = frozenset({"lossless", "protocol"})
"""Experiments that pass only where all was tried. The canary is none of them: as at a start, what
an engine does not offer is skipped, and it passes without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a run was called, beside what it is to be."""

    yes: bool
    detach: bool
    only_plan: bool
    as_json: bool


class Experiments(click.Group):
    """One command an experiment, made from what the experiment says of itself."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The experiments, and what is done with runs that run."""
        return [*_offers(), *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of an experiment, or of a run that runs."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        offer = _offers().get(cmd_name)
        return None if offer is None else _experiment_command(offer)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command.

        Raises:
            UsageError: If there is no such experiment.
        """
        if args and self.get_command(ctx, args[0]) is None:
            raise UsageError(
                f"There is no experiment {args[0]!r}",
                evidence=f"there are {', '.join(_offers())}",
                remedy="What each answers: a40console run --help",
            )
        return super().resolve_command(ctx, args)


@click.command(cls=Experiments)
def command() -> None:
    """Run a controlled experiment; it goes on when this command or the console ends.

    Before it starts it says what it takes and whom it disturbs. What it measured is kept, also of
    a run that was cancelled or met a limit: a40console runs.
    """


def _offers() -> dict[str, Experiment]:
    from a40console.experiments.registry import designs

    return {name: design.offer for name, design in designs().items()}


def _experiment_command(offer: Experiment) -> click.Command:
    @click.pass_obj
    def begin(invocation: Invocation, /, **given: Any) -> Exit:
        spec = _spec(offer.name, given)
        asked = Asked(
            yes=given["yes"],
            detach=given["detach"],
            only_plan=given["only_plan"],
            as_json=given["as_json"],
        )
        return _go(invocation, spec, asked)

    # The parameters stand as they are laid out: click would run them together.
    details = "\n".join(parameter_help(offer)).replace("\n\n", "\n\n\b\n")
    begin.__doc__ = f"{offer.question}\n\n\b\n{details}"
    return click.command(offer.name, short_help=offer.question)(_options(begin))


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What every experiment may be told."""
    number = NumberRange(min=0, min_open=True, max=MOST_MINUTES)
    options = (
        click.option("--preset", type=click.Choice(PRESETS), default="standard", show_default=True),
        click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter."),
        click.option("--url", metavar="URL", help="Measure the server there in place of ours."),
        click.option("--model", metavar="NAME", help="What requests ask for."),
        click.option(
            "--dialect",
            type=click.Choice(["openai", "anthropic"]),
            default="openai",
            show_default=True,
            help="What requests are written in.",
        ),
        click.option("--gateway", is_flag=True, help="Through the gateway, as clients come."),
        click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True),
        click.option("--max-usd", metavar="USD", help="End it when it has cost so much."),
        click.option("--max-minutes", type=number, metavar="M", help="End it after so long."),
        click.option(
            "--when",
            type=click.Choice(["now", "idle"]),
            default="now",
            show_default=True,
            help="idle: wait until nobody works with the engine.",
        ),
        click.option("--note", default="", metavar="TEXT", help="Kept with the run."),
        click.option("--plan", "only_plan", is_flag=True, help=PLAN_HELP),
        click.option("--detach", is_flag=True, help="Queue it and return at once."),
        yes_option,
        json_option,
    )
    for option in reversed(options):
        function = option(function)
    return function


def _spec(experiment: str, given: Mapping[str, Any]) -> RunSpec:
    if given["url"] is not None and not given["url"].strip():
        raise UsageError("--url names no server", remedy="Say it as http://HOST:PORT")
    if given["url"] and given["gateway"]:
        raise UsageError("A run goes to a URL or through the gateway, not both")
    kind: TargetKind = "url" if given["url"] else "gateway" if given["gateway"] else "engine"
    target = RunTarget(
        kind=kind,
        url=_address(given["url"] or ""),
        model=given["model"] or "",
        dialect=given["dialect"],
    )
    return RunSpec(
        experiment=experiment,
        preset=given["preset"],
        parameters=dict(map(_setting, given["settings"])),
        target=target,
        seed=given["seed"],
        max_usd=_dollars(given["max_usd"]),
        max_minutes=given["max_minutes"],
        when=given["when"],
        accept_intrusion=given["yes"],
        note=given["note"],
    )


def _address(url: str) -> str:
    """The URL with its scheme: `host:8000` is meant as HTTP."""
    return url if not url or "://" in url else f"http://{url}"


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--set takes NAME=VALUE, not {text!r}")
    return name.strip().replace("-", "_"), value.strip()


def _dollars(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        value = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        value = Decimal(0)
    plain = text.isascii() and "_" not in text and value.is_finite()
    if not plain or not 0 < float(value) <= MOST_USD:
        raise UsageError(f"--max-usd takes dollars above 0 and at most {MOST_USD:,}, not {text!r}")
    return value


# --- Going ------------------------------------------------------------------------------------


def _go(invocation: Invocation, spec: RunSpec, asked: Asked) -> Exit:
    began: list[str] = []
    try:
        return asyncio.run(_run(invocation, spec, asked, began))
    except KeyboardInterrupt:
        _tell_it_goes_on(began)
        raise


def _tell_it_goes_on(began: list[str]) -> None:
    for run_id in began:
        note(f"\n{run_id} goes on. Follow it: a40console run follow. End it: a40console run cancel")


async def _run(invocation: Invocation, spec: RunSpec, asked: Asked, began: list[str]) -> Exit:
    needs_engine = spec.target.kind != "url" and not asked.only_plan
    service = await ensure_service(invocation.paths, quiet=asked.as_json, engine=needs_engine)
    async with service as client:
        if needs_engine:
            await _see_to_engine(client, invocation, quiet=asked.as_json)
        if asked.only_plan:
            return await _tell_plan(client, invocation, spec, as_json=asked.as_json)
        spec = await _agreed(client, spec, as_json=asked.as_json)
        key = os.environ.get(KEY_VARIABLE, "") if spec.target.kind == "url" else ""
        arguments = {"spec": json.dumps(encode(spec))} | ({"key": key} if key else {})
        progress = Progress(quiet=True)
        result = await act(client, "run.start", timeout_s=None, progress=progress, **arguments)
        run_id = result.result["id"]
        if asked.detach:
            if asked.as_json:
                print_json({"id": run_id, "report": result.result["report"]})
            else:
                echo_text(invocation, result.result["report"])
            return Exit.DONE
        began.append(run_id)
        run = await follow(client, run_id, quiet=asked.as_json)
        began.clear()
        return _concluded(invocation, run, as_json=asked.as_json)


async def _see_to_engine(client: ServiceClient, invocation: Invocation, *, quiet: bool) -> None:
    """Let the engine serve, but where a run has it in hand: that one lets it serve again.

    Raises:
        ConsoleError: If it does not.
    """
    try:
        await serving_engine(client, invocation, timeout_s=None, quiet=quiet)
    except (NotServingError, RefusedError):
        runs = await client.runs()
        if not any(run.state == "running" and run.spec.target.kind != "url" for run in runs):
            raise


async def _tell_plan(
    client: ServiceClient, invocation: Invocation, spec: RunSpec, *, as_json: bool
) -> Exit:
    """Print a plan, and what would let a refused one start."""
    plan = await client.plan_run(spec)
    if as_json:
        print_json({"spec": encode(spec), "plan": encode(plan)})
        return Exit.REFUSED if plan.refusal else Exit.DONE
    for sentence in plan_lines(spec, plan):
        echo_text(invocation, sentence)
    if not plan.refusal:
        return Exit.DONE
    if not (await client.plan_run(_accepting(spec))).refusal:
        echo_text(invocation, f"  {WAYS}")
    return Exit.REFUSED


async def _agreed(client: ServiceClient, spec: RunSpec, *, as_json: bool) -> RunSpec:
    """The spec as the operator agrees to it; its plan is told.

    Raises:
        RefusedError: If it cannot be run as asked.
    """
    plan = await client.plan_run(spec)
    if not as_json:
        for sentence in plan_lines(spec, replace(plan, refusal="")):
            note(sentence)
    if not plan.refusal:
        return spec
    is_final = bool((await client.plan_run(_accepting(spec))).refusal)
    if is_final or as_json or not stderr_is_terminal():
        raise RefusedError(
            f"The run is refused: {plan.refusal}",
            evidence=" ".join(plan.consequences) if as_json else "",
            remedy="" if is_final else WAYS,
        )
    note(f"{plan.refusal[0].upper()}{plan.refusal[1:]}. {WAYS}")
    confirm("Start it all the same?", yes=False)
    return _accepting(spec)


def _accepting(spec: RunSpec) -> RunSpec:
    return replace(spec, accept_intrusion=True)


def _concluded(invocation: Invocation, run: Run, *, as_json: bool) -> Exit:
    """Tell what a run found; the exit code that says how it ended."""
    if as_json:
        print_json(run)
    else:
        print_lines(invocation, conclusion(run, text_width()))
    return exit_of(run)


def exit_of(run: Run) -> Exit:
    """The exit code that says how a run ended: a check must have passed, and whole."""
    if run.state in ("failed", "invalid") or isinstance(run.result, Missing):
        return Exit.CHECK_FAILED
    kind = run.result.verdict.kind
    unproven = kind == "none" and run.spec.experiment in CHECKS
    return Exit.CHECK_FAILED if kind == "failed" or unproven else Exit.DONE


# --- Runs that run ----------------------------------------------------------------------------


@command.command("cancel")
@click.argument("run", required=False, default="")
@json_option
@click.pass_obj
def cancel(invocation: Invocation, *, run: str, as_json: bool) -> None:
    """End RUN, or the one that runs; what it measured till then is kept."""

    async def end() -> None:
        service = await ensure_service(invocation.paths, quiet=as_json, engine=False)
        async with service as client:
            result = await act(
                client, "run.cancel", timeout_s=None, progress=Progress(quiet=True), id=run
            )
        print_result(result, "", as_json=as_json)

    asyncio.run(end())


@command.command("follow")
@click.argument("run", required=False, default="")
@json_option
@click.pass_obj
def follow_run(invocation: Invocation, *, run: str, as_json: bool) -> Exit:
    """Follow RUN, or the one that runs, to its end, and tell what it found."""
    began: list[str] = []

    async def look() -> Exit:
        service = await ensure_service(invocation.paths, quiet=as_json, engine=False)
        async with service as client:
            run_id = run or await _present(client)
            began.append(run_id)
            found = await follow(client, run_id, quiet=as_json)
            began.clear()
        return _concluded(invocation, found, as_json=as_json)

    try:
        return asyncio.run(look())
    except KeyboardInterrupt:
        _tell_it_goes_on(began)
        raise


async def _present(client: ServiceClient) -> str:
    """The run that runs, else the next one that waits."""
    under_way = [run for run in await client.runs() if run.state in ("running", "queued")]
    running = [run for run in under_way if run.state == "running"]
    if not under_way:
        raise RefusedError("No run waits or runs", remedy="See what ran: a40console runs list")
    return (running or under_way[-1:])[0].id
