"""From the wish for an experiment to a run in the queue: choose, set, see the cost, start."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from a40console.errors import UsageError
from a40console.model.calls import CALLABLE
from a40console.model.codec import encode
from a40console.model.command import Command
from a40console.model.experiment import Experiment
from a40console.tui.screens.dialog import Choice, PickDialog
from a40console.tui.screens.run_form import RunFormDialog
from a40console.tui.screens.runs import MODE, RunsScreen

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

START = CALLABLE["run.start"]


async def set_experiment(app: ConsoleApp, command: Command) -> None:
    """Show the runs, and over them the settings of an experiment; start it where it is wanted.

    `experiment.choose` asks which; the other commands name theirs.

    Raises:
        ConsoleError: If the service does not offer it, or refuses it.
    """
    from a40console.tui.actions import carry_out

    if app.current_mode != MODE:
        app.switch_mode(MODE)
    client = await app.feed.client()
    offered = await client.experiments()
    verb = command.id.partition(".")[2]
    name = verb if verb != "choose" else await _chosen(app, command, offered)
    if name is None:
        return
    experiment = next((each for each in offered if each.name == name), None)
    if experiment is None:
        raise UsageError(f"The service offers no experiment {name}")
    wanted = await app.push_screen_wait(RunFormDialog(experiment))
    if wanted is None:
        return
    spec = wanted.spec
    asked = {"spec": json.dumps(encode(spec))} | ({"key": wanted.key} if wanted.key else {})
    done = await carry_out(app, START, asked, named=f"{spec.experiment}, {spec.preset}")
    front = app.screen_stack[0]
    if done and isinstance(front, RunsScreen):
        front.look_at_newest()


async def _chosen(app: ConsoleApp, command: Command, offered: tuple[Experiment, ...]) -> str | None:
    choices = [Choice(value=each.name, title=each.title, detail=each.question) for each in offered]
    return await app.push_screen_wait(PickDialog(command.title, choices))
