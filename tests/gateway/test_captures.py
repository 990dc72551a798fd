"""Capture: nothing is written unless it is asked for, and what is, is private and impersonal."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from a40console.errors import RefusedError
from a40console.gateway import captures as module
from a40console.gateway.captures import Captures
from a40console.gateway.meter import Passage
from a40console.gateway.sessions import SessionBook
from a40console.gateway.upstream import Upstream
from a40console.model.engine import Endpoint
from a40console.sim.day import Agent, Turn
from tests.gateway.stub import until
from tests.gateway.test_session_gateway import SESSION, Client, followed, told
from tests.sim.engine_process import SimProcess, sim_process

SECRET = "sk-ant-very-secret"
DEVICE = "d3v1ce" * 8
ACCOUNT = "acc0unt-0000-4000-8000-123456789abc"
CHAT = "/v1/chat/completions"
ASKED = "where is the blue door"


@pytest.fixture(scope="module")
def sim() -> Iterator[SimProcess]:
    with sim_process("--speed", "50") as process:
        yield process


@pytest.fixture
def upstream(sim: SimProcess) -> Upstream:
    endpoint = Endpoint("http://engine", str(sim.socket))
    model = sim.http.get("/v1/models").json()["data"][0]["id"]
    return Upstream(endpoint=endpoint, kind="sim", served_name=model, plugin=True, run_id="run-1")


def passage(order: int = 1, session: str = "7f3a") -> Passage:
    made = Passage(
        order=order, request_id=f"a40-{order}", route="messages", received_at_s=float(order)
    )
    made.session = session
    return made


async def ask(
    port: int, *, stream: bool, path: str = "/v1/messages", model: str = "anything"
) -> str:
    """One request with everything in it that must not be kept."""
    user = {"device_id": DEVICE, "account_uuid": ACCOUNT, "session_id": SESSION}
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": 12,
        "stream": stream,
        "metadata": {"user_id": json.dumps(user)},
        "user": ACCOUNT,
        "messages": [{"role": "user", "content": ASKED}],
    }
    headers = {"x-api-key": SECRET, "x-a40console-session": SESSION}
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        url = f"http://127.0.0.1:{port}{path}"
        answer = await http.post(url, json=body, headers=headers)
    answer.raise_for_status()
    return answer.text


async def test_nothing_is_written_while_it_is_off(upstream: Upstream, tmp_path: Path) -> None:
    book = SessionBook(captures=Captures(tmp_path / "captures"))
    async with followed(upstream, book) as served:
        await ask(served.port, stream=True)
        await until(lambda: not told(book).live)
    book.captures.settle()
    assert not (tmp_path / "captures").exists()


async def test_a_stream_and_a_whole_answer_are_written_privately_and_without_who_it_was(
    upstream: Upstream, tmp_path: Path
) -> None:
    book = SessionBook(captures=Captures(tmp_path / "captures"))
    folder = book.captures.begin(SESSION)
    async with followed(upstream, book) as served:
        streamed = await ask(served.port, stream=True)
        whole = await ask(served.port, stream=False)
        name = upstream.served_name
        chat = await ask(served.port, stream=False, path=CHAT, model=name)
        await until(lambda: not told(book).live)
    book.captures.settle()

    files = sorted(folder.iterdir())
    kinds = [path.name.split(".", 1)[1] for path in files]
    assert kinds == [
        "request.json",
        "response.sse",
        "request.json",
        "response.json",
        "request.json",
        "response.json",
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {stat.S_IMODE(each.stat().st_mode) for each in (folder, folder.parent)} == {0o700}
    texts = [path.read_text(encoding="utf-8") for path in files]
    assert [texts[1], texts[3], texts[5]] == [streamed, whole, chat]
    assert [text.count(ASKED) for text in texts[::2]] == [1, 1, 1]
    for text in texts:
        assert SECRET not in text
        assert DEVICE not in text
        assert ACCOUNT not in text


async def test_another_sessions_text_is_not_written(upstream: Upstream, tmp_path: Path) -> None:
    book = SessionBook(captures=Captures(tmp_path / "captures"))
    folder = book.captures.begin("another")
    async with followed(upstream, book) as served:
        await ask(served.port, stream=True)
        await until(lambda: not told(book).live)
    book.captures.settle()
    assert list(folder.iterdir()) == []


async def test_after_its_end_nothing_more_is_written(upstream: Upstream, tmp_path: Path) -> None:
    book = SessionBook(captures=Captures(tmp_path / "captures"))
    folder = book.captures.begin(SESSION)
    async with followed(upstream, book) as served:
        client = Client(served, Agent(session=SESSION), upstream.served_name)
        await client.ask(Turn(adds=40, answer_tokens=5), 0)
        await until(lambda: not told(book).live)
        assert book.captures.end(SESSION)
        await client.ask(Turn(adds=40, answer_tokens=5), 1)
        await until(lambda: not told(book).live)
    book.captures.settle()
    assert len(list(folder.iterdir())) == 2


async def test_a_capture_that_is_full_ends_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SESSION_LIMIT_BYTES", 200)
    captures, ends = Captures(tmp_path), list[str]()
    captures.on_end = lambda session, why: ends.append(f"{session}: {why}")
    captures.begin("7f3a")
    captures.asked(passage(1), lambda: b'{"messages": "%b"}' % (b"x" * 150))
    assert captures.is_on("7f3a")
    captures.asked(passage(2), lambda: b'{"messages": "%b"}' % (b"x" * 150))
    captures.settle()
    assert ends == ["7f3a: 200 bytes are written"]
    assert not captures.is_on("7f3a")
    with pytest.raises(RefusedError, match="are full"):
        captures.begin("7f3a")


async def test_a_long_text_is_cut_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FILE_LIMIT_BYTES", 50)
    captures, one = Captures(tmp_path), passage()
    folder = captures.begin("7f3a")

    async def send(message: Any) -> None:
        sent.append(message)

    sent: list[Any] = []
    tapped = captures.tapped(one, send)
    captures.asked(one, lambda: b'{"messages": "%b"}' % (b"x" * 150))
    await tapped({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(3):
        await tapped({"type": "http.response.body", "body": b"y" * 40, "more_body": True})
    captures.ended(one)
    captures.settle()
    request, response = sorted(path.read_text() for path in folder.iterdir())[::-1]
    assert len(sent) == 4
    assert request.startswith('{\n "messages": "xxx')
    assert response.startswith("y" * 50 + "\n… cut here")
    assert request.endswith("no file of a capture is larger\n")


async def test_a_disk_that_takes_nothing_ends_it(tmp_path: Path) -> None:
    captures, ends = Captures(tmp_path), list[str]()
    captures.on_end = lambda session, why: ends.append(why)
    folder = captures.begin("7f3a")
    running = captures._running["7f3a"]
    folder.rmdir()
    captures.asked(passage(1), lambda: b"{}")
    await until(lambda: running.trouble)
    captures.asked(passage(2), lambda: b"{}")
    assert len(ends) == 1
    assert ends[0].startswith("it cannot be written: ")


def test_while_nothing_is_captured_the_way_to_the_client_is_the_very_same(tmp_path: Path) -> None:
    async def send(message: Any) -> None: ...

    captures = Captures(tmp_path)
    assert captures.tapped(passage(), send) is send
    captures.begin("7f3a")
    assert captures.tapped(passage(), send) is not send


def test_a_gateway_without_a_folder_keeps_no_text() -> None:
    with pytest.raises(RefusedError, match="No text is kept"):
        Captures().begin("7f3a")


async def test_what_passes_is_not_read_where_the_streams_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, readers, read = threading.get_ident(), list[int](), json.loads
    asked = b'{"messages": [], "user": "me"}'

    def watched(data: bytes) -> Any:
        if data == asked:  # other threads read too
            readers.append(threading.get_ident())
        return read(data)

    monkeypatch.setattr(json, "loads", watched)
    captures = Captures(tmp_path)
    folder = captures.begin("7f3a")
    captures.asked(passage(), lambda: asked)
    captures.settle()
    (written,) = folder.iterdir()

    assert written.read_text() == '{\n "messages": []\n}'
    assert len(readers) == 1
    assert here not in readers


def test_what_its_layout_adds_counts_to_what_is_written(tmp_path: Path) -> None:
    captures = Captures(tmp_path)
    folder = captures.begin("7f3a")
    running = captures._running["7f3a"]
    for number in range(3):
        captures.asked(passage(number), lambda: b'{"messages":[1,2,3],"user":"me"}')
    captures.settle()

    assert running.written_bytes == sum(path.stat().st_size for path in folder.iterdir())
