"""Public bug reports of such consoles, replayed: what the operator is told instead."""

from __future__ import annotations

import httpx
import pytest

from a40console.model.engine import Endpoint
from a40console.model.figures import Missing, number
from a40console.model.snapshot import SourceStatus
from a40console.telemetry.fetch import EngineHttp
from a40console.telemetry.sampler import EngineSampler
from a40console.telemetry.view import EngineView
from a40console.telemetry.vllm import MetricsSource
from tests.telemetry.engines import Events, Request, SimulatedEngine, poll, sampler_of
from tests.telemetry.makers import Clock, Handler, metrics_answer, routes, text_of


def engine_of(*requests: Request) -> SimulatedEngine:
    clock = Clock()
    return SimulatedEngine(clock, list(requests), born_s=clock.now_s)


def busy() -> SimulatedEngine:
    return engine_of(Request("a", 0.0, 0.5, 50.0, 100_000))


def source_of(view: EngineView, name: str) -> SourceStatus:
    return next(source for source in view.sources if source.name == name)


async def step(engine: SimulatedEngine, sampler: EngineSampler, seconds: float = 1.0) -> EngineView:
    engine.clock.now_s += seconds
    await poll(sampler)
    return sampler.view((), ())


async def test_17_an_engine_restart_is_a_gap_and_an_event() -> None:
    engine, events = busy(), Events()
    sampler = sampler_of(engine, events=events)
    for _ in range(8):
        view = await step(engine, sampler)
    assert number(view.throughput.generation_tokens_per_s) == pytest.approx(50, rel=0.02)
    engine.born_s = engine.clock.now_s  # its counters begin again
    view = await step(engine, sampler)
    gap = view.throughput.generation_tokens_per_s
    assert gap == Missing("the counters began again: one reading so far")
    assert events.kinds == ["counters.reset"]
    assert view.counters_reset_s == 0
    for _ in range(8):
        view = await step(engine, sampler)
        assert (number(view.throughput.generation_tokens_per_s) or 0) >= 0
    assert events.kinds == ["counters.reset"]


async def test_17_a_restart_seen_by_two_sources_is_one_event() -> None:
    engine, events = busy(), Events()
    sampler = sampler_of(engine, plugin=True, events=events)
    for _ in range(4):
        await step(engine, sampler)
    engine.born_s, engine.boot = engine.clock.now_s, "boot-2"
    view = await step(engine, sampler)
    assert events.kinds == ["counters.reset"]
    assert view.slots != ()


async def test_17_an_empty_cache_after_a_restart_is_no_hit_rate_of_zero() -> None:
    clock, figures = Clock(), {"queries": 1000.0, "hits": 900.0}

    def metrics(_: httpx.Request) -> httpx.Response:
        return metrics_answer(
            f"vllm:prefix_cache_queries_total {figures['queries']}\n"
            f"vllm:prefix_cache_hits_total {figures['hits']}\n"
            "vllm:time_to_first_token_seconds_count 3\n"
        )

    sampler = EngineSampler(
        kind="vllm",
        endpoint=Endpoint("http://engine"),
        on_event=Events(),
        clock=clock,
        transport=routes({"/metrics": metrics}),
    )
    for queries, hits in ((1000, 900), (0, 0), (500, 0)):
        figures.update(queries=queries, hits=hits)
        clock.now_s += 1
        await poll(sampler)
    cache = sampler.view((), ()).prefix_cache
    assert cache.hit_ratio == Missing("the engine just restarted: its cache was empty")
    assert (cache.hit_tokens, cache.queried_tokens) == (0, 500)
    clock.now_s += 70
    await poll(sampler)
    figures.update(queries=1500, hits=100)
    clock.now_s += 1
    await poll(sampler)
    assert sampler.view((), ()).prefix_cache.hit_ratio == pytest.approx(0.1)


async def body(text: str, content_type: str = "text/plain", status: int = 200) -> SourceStatus:
    """The metrics source's state after a good reading and then this answer."""
    engine = busy()
    sampler = sampler_of(engine)
    for _ in range(3):
        await step(engine, sampler)
    engine.overrides["/metrics"] = httpx.Response(
        status, headers={"content-type": content_type}, text=text
    )
    for _ in range(6):
        view = await step(engine, sampler)
    assert number(view.throughput.generation_tokens_per_s) is not None  # the last value stays
    assert number(view.throughput.age_s) == 6  # and its age with it
    return source_of(view, "vllm.metrics")


async def test_18_an_empty_body_is_unknown_and_not_zero() -> None:
    status = await body("")
    assert (status.state, status.reason) == ("failed", "no metrics exposed: the body is empty")
    engine = busy()
    engine.overrides["/metrics"] = metrics_answer("")
    view = await step(engine, sampler_of(engine))
    why = Missing("no metrics exposed: the body is empty")
    assert view.throughput.generation_tokens_per_s == why
    assert view.requests.running == why
    assert view.slots == why
    assert view.kv_cache.held_ratio == why


async def test_19_broken_telemetry_of_a_working_engine_is_called_that() -> None:
    status = await body("prometheus_multiproc_dir", status=500)
    assert status.state == "failed"
    assert status.reason == (
        "the engine answers, but its telemetry is broken: HTTP 500 from /metrics"
    )


async def test_20_renamed_metrics_resolve_and_absent_ones_are_named() -> None:
    clock = Clock()
    old = (
        "vllm:num_requests_running 2\n"
        "vllm:num_requests_waiting 1\n"
        "vllm:gpu_prefix_cache_queries_total 400\n"
        "vllm:gpu_prefix_cache_hits_total 100\n"
    )
    sampler = EngineSampler(
        kind="vllm",
        endpoint=Endpoint("http://engine"),
        on_event=Events(),
        clock=clock,
        transport=routes({"/metrics": metrics_answer(old)}),
    )
    await poll(sampler)
    view = sampler.view((), ())
    assert (view.requests.running, view.requests.waiting) == (2, 1)
    assert view.prefix_cache.hit_ratio_since_start == 0.25
    assert view.kv_cache.held_ratio == Missing("vllm:kv_cache_usage_perc is not exposed")


async def test_21_created_lines_change_nothing() -> None:
    name = "vllm-0.32-ngram-after"
    clock, text = Clock(), text_of(name)
    plain = "".join(line for line in text.splitlines(True) if "_created" not in line)
    assert text.count("_created") > 100
    readings = []
    for each in (text, plain):
        http = EngineHttp(
            Endpoint("http://engine"),
            clock=clock,
            transport=routes({"/metrics": metrics_answer(each)}),
        )
        readings.append(await MetricsSource(http).read())
    assert readings[0] == readings[1]


async def test_22_one_nan_costs_one_cell() -> None:
    engine = busy()
    sampler = sampler_of(engine)

    def spoilt(_: httpx.Request) -> httpx.Response:
        text = engine.vllm_metrics(engine.now_s())
        return metrics_answer(
            "".join(
                line.rpartition(" ")[0] + " NaN\n" if "num_requests_waiting" in line else line
                for line in text.splitlines(True)
            )
        )

    engine.overrides["/metrics"] = spoilt
    for _ in range(7):
        view = await step(engine, sampler)
    assert isinstance(view.requests.waiting, Missing)
    assert view.requests.running == 1
    assert number(view.throughput.generation_tokens_per_s) == pytest.approx(50, rel=0.02)
    assert source_of(view, "vllm.metrics").state == "ok"


async def test_23_a_web_page_is_not_a_connected_engine() -> None:
    page = "<html><body><h1>502 Bad Gateway</h1><hr>nginx</body></html>"
    status = await body(page, "text/html")
    assert status.state == "failed"
    assert status.reason == "not a metrics endpoint: it answers with a web page"


@pytest.mark.parametrize("at_line_end", [True, False])
async def test_24_a_cut_scrape_is_discarded_and_the_last_one_kept(at_line_end: bool) -> None:
    engine = busy()
    sampler = sampler_of(engine)
    for _ in range(6):
        view = await step(engine, sampler)
    before = view.throughput.generation_tokens_per_s

    def cut(_: httpx.Request) -> httpx.Response:
        text = engine.vllm_metrics(engine.now_s())
        end = text.index("vllm:num_requests") if at_line_end else len(text) // 2
        return metrics_answer(text[:end])

    engine.overrides["/metrics"] = cut
    view = await step(engine, sampler)
    assert view.throughput.generation_tokens_per_s == before
    assert view.throughput.age_s == 1
    assert view.requests.running == 1
    metrics = source_of(view, "vllm.metrics")
    assert metrics.state == "stale"
    assert "cut" in (metrics.reason or "")
    del engine.overrides["/metrics"]
    view = await step(engine, sampler)
    assert source_of(view, "vllm.metrics").state == "ok"
    assert view.throughput.age_s == 0


async def test_24_series_that_stay_away_are_believed_in_the_end() -> None:
    engine = busy()
    sampler = sampler_of(engine)
    for _ in range(3):
        await step(engine, sampler)
    engine.overrides["/metrics"] = metrics_answer("vllm:num_requests_running 3\n")
    for _ in range(6):
        view = await step(engine, sampler)
    assert view.requests.running == 3
    assert source_of(view, "vllm.metrics").state == "ok"


@pytest.mark.parametrize(
    ("plugin_answer", "reason"),
    [
        (httpx.Response(404), "the plugin is not loaded in this engine (HTTP 404)"),
        (httpx.Response(401), "the plugin refuses our token (HTTP 401)"),
        (httpx.Response(500), "HTTP 500 from /a40console/v1/state"),
        (httpx.Response(200, text="<html>"), "answers no JSON"),
        (httpx.Response(200, text='{"version": 2}'), "speaks version 2, this console 1"),
        (
            httpx.Response(200, text='{"version": 1, "boot": "b", "at_monotonic_s": 1.0}'),
            "the plugin's answer is not understood (KeyError",
        ),
    ],
)
async def test_a_plugin_that_does_not_answer_leaves_the_metrics(
    plugin_answer: httpx.Response, reason: str
) -> None:
    engine = busy()
    engine.overrides["/a40console/v1/state"] = plugin_answer
    sampler = sampler_of(engine, plugin=True)
    for _ in range(7):
        view = await step(engine, sampler)
    assert reason in (source_of(view, "vllm.plugin").reason or "")
    assert source_of(view, "vllm.plugin").state == "failed"
    assert view.throughput.source == "vllm.metrics"
    assert number(view.throughput.generation_tokens_per_s) == pytest.approx(50, rel=0.02)
    assert not view.plugin_counts


async def test_an_engine_that_stands_still_is_told_apart_from_its_health() -> None:
    """Requests run, nothing moves, /health says 200: both are shown, each with its age."""
    engine = busy()
    sampler = sampler_of(engine)
    for _ in range(3):
        view = await step(engine, sampler)
    assert view.progress.generation_flat_s == 0
    frozen = engine.vllm_metrics(engine.now_s())
    engine.overrides["/metrics"] = metrics_answer(frozen)
    for _ in range(40):
        view = await step(engine, sampler)
    assert view.progress.generation_flat_s == 40
    assert view.progress.steps_flat_s == 40
    assert view.progress.health_status == 200
    engine.overrides["/health"] = httpx.Response(503)
    view = await step(engine, sampler)
    assert view.progress.health_status == 503
    assert view.progress.generation_flat_s == 41


async def test_an_idle_engine_does_not_stand_still() -> None:
    engine = engine_of(
        Request("before", 0.0, 0.1, 50.0, 20), Request("after", 3600.0, 0.1, 50.0, 1000)
    )
    sampler = sampler_of(engine)
    view = await step(engine, sampler, 10)
    view = await step(engine, sampler, 3580)
    assert view.progress.generation_flat_s == Missing("no request is open")
    view = await step(engine, sampler, 10.05)
    assert view.progress.generation_flat_s == 0


async def test_a_long_prefill_moves_steps_and_no_tokens() -> None:
    engine = busy()
    sampler = sampler_of(engine)
    steps = iter(range(1000, 2000))

    def prefilling(_: httpx.Request) -> httpx.Response:
        return metrics_answer(
            "vllm:generation_tokens_total 5\n"
            f"vllm:iteration_tokens_total_count {next(steps)}\n"
            "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n"
        )

    engine.overrides["/metrics"] = prefilling
    for _ in range(60):
        view = await step(engine, sampler)
    assert view.progress.generation_flat_s == 59
    assert view.progress.steps_flat_s == 0


async def test_sources_that_come_and_go_are_events_once() -> None:
    engine, events = busy(), Events()
    sampler = sampler_of(engine, events=events)
    await step(engine, sampler)
    down: Handler = lambda _: httpx.Response(500)  # noqa: E731
    engine.overrides["/metrics"] = down
    for _ in range(5):
        await step(engine, sampler)
    del engine.overrides["/metrics"]
    for _ in range(3):
        await step(engine, sampler)
    assert events.kinds == ["source.failed", "source.restored"]
    assert "vllm.metrics" in events[0][1]
