"""A command's outcome, whatever it is, reaches whoever asks for its id."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from a40console.errors import RefusedError, TimedOutError, UsageError
from a40console.model.control import CommandResult
from a40console.model.engine import EngineState
from a40console.operations.status import EngineStatus
from a40console.operations.who import asking
from a40console.service.journal import Journal
from a40console.service.tasks import KEPT_RESULTS, CommandTasks


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "events.jsonl")


async def outcome(commands: CommandTasks, started: CommandResult) -> CommandResult:
    for _ in range(200):
        result = commands.result(started.id)
        if result.state != "running":
            return result
        await asyncio.sleep(0.01)
    raise AssertionError("the command never ended")


async def test_done_with_its_result_and_events(journal: Journal) -> None:
    async def start(arguments: Mapping[str, str]) -> dict[str, str]:
        journal.record("engine.serving", "smollm2 serves")
        return {"profile": arguments["profile"]}

    commands = CommandTasks({"engine.start": start}, journal)
    result = await outcome(commands, commands.start("engine.start", {"profile": "smollm2-135m"}))
    assert (result.state, result.result) == ("done", {"profile": "smollm2-135m"})
    assert [event.kind for event in result.events] == ["engine.serving"]


async def test_refused_failed_and_a_bug_are_told_apart(journal: Journal) -> None:
    async def refuse(arguments: Mapping[str, str]) -> dict[str, str]:
        raise RefusedError("an engine lives", evidence="pid 7", remedy="stop it")

    async def late(arguments: Mapping[str, str]) -> dict[str, str]:
        raise TimedOutError("not in time")

    async def broken(arguments: Mapping[str, str]) -> dict[str, str]:
        raise KeyError("x")

    commands = CommandTasks(
        {"engine.start": refuse, "engine.stop": late, "engine.restart": broken}, journal
    )
    refused = await outcome(commands, commands.start("engine.start", {}))
    assert refused.trouble is not None
    assert (refused.state, refused.trouble.exit_code, refused.trouble.remedy) == (
        "refused", 5, "stop it",
    )  # fmt: skip
    failed = await outcome(commands, commands.start("engine.stop", {}))
    assert failed.trouble is not None
    assert (failed.state, failed.trouble.exit_code) == ("failed", 7)
    bug = await outcome(commands, commands.start("engine.restart", {}))
    assert bug.trouble is not None
    assert (bug.state, bug.trouble.exit_code) == ("failed", 1)
    assert "service.log" in bug.trouble.remedy


async def test_unknown_commands_arguments_and_ids_are_named(journal: Journal) -> None:
    commands = CommandTasks({}, journal)
    with pytest.raises(UsageError, match=r"no command engine\.fly"):
        commands.start("engine.fly", {})
    with pytest.raises(UsageError, match="No command has the id"):
        commands.result("abc")


async def test_a_long_command_outlives_the_results_of_many_short_ones(journal: Journal) -> None:
    done = asyncio.Event()

    async def long(arguments: Mapping[str, str]) -> dict[str, str]:
        await done.wait()
        return {"long": "over"}

    async def short(arguments: Mapping[str, str]) -> dict[str, str]:
        return {}

    commands = CommandTasks({"engine.start": long, "engine.stop": short}, journal)
    first = commands.start("engine.start", {})
    early = commands.start("engine.stop", {})
    for _ in range(KEPT_RESULTS + 20):
        await outcome(commands, commands.start("engine.stop", {}))
    assert commands.result(first.id).state == "running"
    done.set()
    assert (await outcome(commands, first)).result == {"long": "over"}
    with pytest.raises(UsageError):
        commands.result(early.id)


async def test_who_did_it_what_before_and_after_is_an_event(journal: Journal) -> None:
    states = iter(
        (EngineStatus(state=EngineState.SERVING), EngineStatus(state=EngineState.STOPPED))
    )

    async def stop(arguments: Mapping[str, str]) -> dict[str, str]:
        return {"report": "it ended after 0.2 s"}

    tasks = CommandTasks({"engine.stop": stop}, journal, "", lambda: next(states))
    tasks.start("engine.stop", {}, "alice@pod on pts/3, console, pid 7")
    await asyncio.sleep(0.01)
    (done,) = journal.since(0, 10)
    assert (done.kind, done.text) == (
        "command.done",
        "engine.stop by alice@pod on pts/3, console, pid 7",
    )
    assert done.data == {
        "who": "alice@pod on pts/3, console, pid 7",
        "before": "serving",
        "after": "stopped",
        "result": "it ended after 0.2 s",
    }


async def test_what_tells_its_own_asker_is_told_once(journal: Journal) -> None:
    async def switch(arguments: Mapping[str, str]) -> dict[str, str]:
        journal.record("engine.switched", "switch to b", "info", {"who": asking()})
        return {"profile": "b"}

    tasks = CommandTasks({"engine.switch": switch}, journal)
    tasks.start("engine.switch", {"profile": "b"}, "alice")
    await asyncio.sleep(0.01)
    assert [event.kind for event in journal.since(0, 10)] == ["engine.switched"]


async def test_what_another_command_of_the_same_asker_tells_tells_nothing_of_this_one(
    journal: Journal,
) -> None:
    may_end = asyncio.Event()

    async def stop(arguments: Mapping[str, str]) -> dict[str, str]:
        await may_end.wait()
        return {"report": "it ended"}

    async def switch(arguments: Mapping[str, str]) -> dict[str, str]:
        data = {"who": asking()}
        journal.record("switched", "b", "info", data)
        return {}

    tasks = CommandTasks({"engine.stop": stop, "engine.switch": switch}, journal)
    tasks.start("engine.stop", {}, "alice")
    tasks.start("engine.switch", {}, "alice")
    await asyncio.sleep(0.01)
    may_end.set()
    await asyncio.sleep(0.01)
    assert [(e.kind, e.data["who"]) for e in journal.since(0, 10)] == [
        ("switched", "alice"),
        ("command.done", "alice"),
    ]


async def test_who_did_it_is_told_once_however_much_happened_meanwhile(journal: Journal) -> None:
    async def switch(arguments: Mapping[str, str]) -> dict[str, str]:
        for number in range(150):
            journal.record("noise", str(number))

        async def told() -> None:
            journal.record("engine.switched", "b", "info", {"who": asking()})

        await asyncio.create_task(told())
        return {}

    tasks = CommandTasks({"engine.switch": switch}, journal)
    tasks.start("engine.switch", {}, "alice")
    await asyncio.sleep(0.01)
    assert [event.kind for event in journal.since(150, 10)] == ["engine.switched"]


async def test_a_read_only_service_refuses_what_acts_and_writes_down_who_asked(
    journal: Journal,
) -> None:
    async def done(arguments: Mapping[str, str]) -> dict[str, str]:
        return {}

    handlers = {"engine.stop": done, "doctor.run": done}
    tasks = CommandTasks(handlers, journal, "[service] read_only in config.toml")
    with pytest.raises(RefusedError) as refused:
        tasks.start("engine.stop", {}, "alice")
    assert refused.value.evidence == "forbidden by: [service] read_only in config.toml"
    assert journal.since(0, 10)[0].data["who"] == "alice"
    tasks.start("doctor.run", {}, "alice")
