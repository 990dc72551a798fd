"""What an installation is made of: its lock, its sources, its driver, the order of releases."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines.gpu_driver import CudaVersion, GpuDriver, caution, why_not
from a40console.engines.installing.environments import version_key
from a40console.engines.installing.exclusive import alone
from a40console.engines.installing.resolution import parse_lock
from a40console.engines.installing.sources import (
    find_links,
    parse_pip_settings,
    torch_location,
    uv_environment,
    without_credentials,
)
from a40console.errors import RefusedError


async def test_two_installations_do_not_meet(tmp_path: Path) -> None:
    with (
        alone(tmp_path),
        pytest.raises(RefusedError, match="Another installation") as refused,
        alone(tmp_path),
    ):
        pytest.fail("both hold the lock")
    assert str(os.getpid()) in refused.value.evidence
    with alone(tmp_path):
        pass


def test_a_torch_of_the_disk_makes_the_index_needless(tmp_path: Path) -> None:
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl").touch()
    links = {"find-links": str(tmp_path)}
    with_folder = uv_environment({}, links, "https://torch.example/whl/cpu")
    assert with_folder == {"UV_FIND_LINKS": str(tmp_path)}
    without = uv_environment({}, {}, "https://torch.example/whl/cpu")
    assert without == {"UV_FIND_LINKS": "https://torch.example/whl/cpu/torch/"}
    assert torch_location(str(tmp_path)) == str(tmp_path)
    for_gpu = uv_environment({}, {}, None)
    assert for_gpu == {}


def test_pips_settings_are_taken_where_uv_has_none() -> None:
    listing = (
        "global.index-url='https://user:pw@mirror.example/simple'\n"
        "global.extra-index-url='https://a.example/simple\\nhttps://b.example/simple'\n"
        "install.find-links='/one /two'\n"
        "freeze.timeout='10'\n"
    )
    pip = parse_pip_settings(listing)
    environment = uv_environment({}, pip, None)
    assert environment["UV_DEFAULT_INDEX"] == "https://user:pw@mirror.example/simple"
    assert environment["UV_INDEX"] == "https://a.example/simple https://b.example/simple"
    assert environment["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert environment["UV_FIND_LINKS"] == "/one,/two"
    own = {"UV_DEFAULT_INDEX": "https://c.example", "UV_FIND_LINKS": "/three"}
    kept = uv_environment(own, pip, None)
    assert kept["UV_DEFAULT_INDEX"] == "https://c.example"
    assert find_links(own, pip) == ["/three"]


def test_addresses_are_told_without_their_passwords() -> None:
    text = "at https://user:pw@host.example/simple and http://token@other/"
    assert without_credentials(text) == "at https://***@host.example/simple and http://***@other/"


def test_a_lock_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no lock file"):
        parse_lock('[[packages]]\nname = "vllm"\n')
    assert parse_lock("").packages == ()


@given(
    st.tuples(st.integers(0, 30), st.integers(0, 20)),
    st.tuples(st.integers(0, 30), st.integers(0, 20)),
)
def test_a_driver_runs_what_is_not_of_a_newer_major(
    build: tuple[int, int], driver: tuple[int, int]
) -> None:
    of = GpuDriver("1", CudaVersion(*driver), ())
    reason = why_not(CudaVersion(*build), of)
    assert (reason is None) == (build[0] <= driver[0])
    if caution(CudaVersion(*build), of) is not None:
        assert reason is None


@given(st.lists(st.integers(0, 99), min_size=1, max_size=4))
def test_a_release_comes_after_its_candidates(numbers: list[int]) -> None:
    release = ".".join(map(str, numbers))
    assert version_key(f"{release}rc1") < version_key(release) < version_key(f"{release}.post1")
    assert version_key(release) < version_key(f"{release}.1")
    assert version_key("0.9.2") < version_key("0.10.0")
