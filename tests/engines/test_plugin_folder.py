"""The plugin's folder and the environment that makes an engine load it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines.plugin_folder import (
    EngineEnvironmentError,
    content_digest,
    engine_entry_points,
    engine_python,
    interpreter_named,
    plugin_environment,
    plugin_files,
    plugin_names,
    write_plugin_folder,
)


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_the_folder_holds_the_plugin_and_its_metadata_only(tmp_path: Path) -> None:
    folder = write_plugin_folder(tmp_path / "new" / "place")
    assert {path.name.split("-")[0] for path in folder.iterdir()} == {"a40console_vllm"}
    (metadata,) = folder.glob("*.dist-info")
    assert {path.name for path in metadata.iterdir()} == {
        "METADATA",
        "entry_points.txt",
        "INSTALLER",
        "RECORD",
    }
    recorded = {line.split(",")[0] for line in (metadata / "RECORD").read_text().splitlines()}
    assert recorded == files_in(folder)


def test_writing_it_again_changes_nothing(tmp_path: Path) -> None:
    folder = write_plugin_folder(tmp_path)
    before = {name: (folder / name).stat().st_mtime_ns for name in files_in(folder)}
    (folder / "a40console_vllm" / "__pycache__").mkdir()
    assert write_plugin_folder(tmp_path) == folder
    assert {name: (folder / name).stat().st_mtime_ns for name in before} == before
    assert list(tmp_path.iterdir()) == [folder]


def test_a_damaged_folder_is_made_anew(tmp_path: Path) -> None:
    folder = write_plugin_folder(tmp_path)
    whole = files_in(folder)
    (folder / "a40console_vllm" / "watch.py").unlink()
    (folder / "a40console_vllm" / "phase.py").write_text("")
    assert write_plugin_folder(tmp_path) == folder
    assert files_in(folder) == whole
    assert (folder / "a40console_vllm" / "phase.py").stat().st_size > 0
    assert list(tmp_path.iterdir()) == [folder]


def test_another_version_is_another_folder() -> None:
    sources = {"__init__.py": b"", "watch.py": b"one"}
    first = content_digest(plugin_files(sources, "1.0"))
    assert first == content_digest(plugin_files(dict(reversed(sources.items())), "1.0"))
    assert first != content_digest(plugin_files(sources, "1.1"))
    assert first != content_digest(plugin_files(sources | {"watch.py": b"two"}, "1.0"))


def test_an_interpreter_finds_the_distribution_in_it(tmp_path: Path) -> None:
    folder = write_plugin_folder(tmp_path)
    script = (
        "import json, importlib.metadata as m;"
        "d = m.distribution('a40console-vllm');"
        "print(json.dumps([[e.group, e.name, e.load().__name__] for e in d.entry_points"
        " if e.group == 'vllm.endpoint_plugins']))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(folder)},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(told.stdout) == [["vllm.endpoint_plugins", "a40console", "ConsoleEndpoint"]]


def fake_distribution(folder: Path, entry_points: str) -> Path:
    metadata = folder / "other-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(entry_points)
    return folder


def test_every_plugin_that_would_load_is_listed_and_no_closed_route_is_opened(
    tmp_path: Path,
) -> None:
    path = fake_distribution(
        tmp_path,
        "[vllm.general_plugins]\nmodels = other:f\n"
        "[vllm.platform_plugins]\ncard = other:f\nmodels = other:g\n"
        "[vllm.endpoint_plugins]\nroutes = other:f\n"
        "[console_scripts]\nother = other:f\n",
    )
    names = engine_entry_points(Path(sys.executable), pythonpath=str(path))
    assert names == ["card", "models"]


def test_the_environment_adds_to_what_the_user_set(tmp_path: Path) -> None:
    path = fake_distribution(tmp_path / "users", "[vllm.general_plugins]\nmodels = other:f\n")
    folder, token = tmp_path / "plugin", tmp_path / "token"
    assert plugin_environment(
        Path(sys.executable), folder, token, user_plugins="routes", pythonpath=str(path)
    ) == {
        "PYTHONPATH": f"{folder}{os.pathsep}{path}",
        "VLLM_PLUGINS": "models,a40console,routes",
        "A40CONSOLE_PLUGIN_TOKEN_FILE": str(token),
    }
    alone = plugin_environment(Path(sys.executable), folder, token, user_plugins=None)
    assert alone["PYTHONPATH"] == str(folder)
    assert alone["VLLM_PLUGINS"] == "a40console"


_name = st.text("abc_", min_size=1, max_size=3)


@given(st.lists(_name), st.none() | st.lists(_name))
def test_every_name_is_given_once(existing: list[str], users: list[str] | None) -> None:
    given_names = None if users is None else " , ".join(users)
    names = plugin_names(existing, given_names).split(",")
    assert len(names) == len(set(names))
    assert set(names) == {*existing, *(users or ()), "a40console"}


def test_the_users_empty_list_adds_no_empty_name() -> None:
    assert plugin_names(["models"], "") == "models,a40console"


@pytest.mark.parametrize(
    ("head", "python"),
    [
        (["#!/opt/engine/bin/python\n", "import sys\n"], "/opt/engine/bin/python"),
        (["#! /opt/my engine/bin/python3.11 -E\n", ""], "/opt/my engine/bin/python3.11"),
        (["#!/usr/bin/env python3\n", ""], "python3"),
        (["#!/usr/bin/env -S python3.12\n", ""], "python3.12"),
        (["#!/bin/sh\n", '\'\'\'exec\' "/a b/bin/python" "$0" "$@"\n'], "/a b/bin/python"),
        (["#!/bin/sh\n", "'''exec' /opt/e/bin/python3 \"$0\" \"$@\"\n"], "/opt/e/bin/python3"),
        (["#!/bin/sh\n", "'''exec' '/opt/e/bin/python3' \"$0\" \"$@\"\n"], "/opt/e/bin/python3"),
        (["#!/bin/bash\n", "exec vllm\n"], None),
        (["\x7fELF", ""], None),
        ([], None),
    ],
)
def test_the_interpreter_is_read_from_the_script(head: list[str], python: str | None) -> None:
    assert interpreter_named(head) == python


def script_at(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_scripts_own_interpreter_comes_first(tmp_path: Path) -> None:
    python = script_at(tmp_path / "env/bin/python3.11", "")
    script_at(tmp_path / "bin/python", "")
    vllm = script_at(tmp_path / "bin/vllm", f"#!{python}\n")
    assert engine_python(vllm) == python


def test_a_wrapper_is_taken_with_the_interpreter_beside_it(tmp_path: Path) -> None:
    python = script_at(tmp_path / "env/bin/python", "")
    vllm = script_at(tmp_path / "env/bin/vllm", "#!/bin/bash\nexec true\n")
    assert engine_python(vllm) == python
    link = tmp_path / "bin" / "vllm"
    link.parent.mkdir()
    link.symlink_to(vllm)
    assert engine_python(link) == python


def test_an_interpreter_names_itself(tmp_path: Path) -> None:
    assert engine_python(tmp_path / "python3") == tmp_path / "python3"


def test_a_name_is_looked_up_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = script_at(tmp_path / "python", "")
    script_at(tmp_path / "vllm-of-ours", f"#!{python}\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert engine_python(Path("vllm-of-ours")) == python
    with pytest.raises(EngineEnvironmentError, match="is not on the PATH"):
        engine_python(Path("vllm-of-nobody"))


def test_without_an_interpreter_the_way_out_is_told(tmp_path: Path) -> None:
    vllm = script_at(tmp_path / "vllm", "#!/opt/gone/python\n")
    with pytest.raises(EngineEnvironmentError, match=r"#!/opt/gone/python.*profile's executable"):
        engine_python(vllm)
    with pytest.raises(EngineEnvironmentError, match="cannot be read"):
        engine_python(tmp_path / "missing")


def test_an_interpreter_that_fails_is_quoted(tmp_path: Path) -> None:
    broken = script_at(tmp_path / "broken", "#!/bin/sh\necho 'no module named os' >&2\nexit 3\n")
    with pytest.raises(EngineEnvironmentError, match=r"exit code 3\): no module named os"):
        engine_entry_points(broken)
    silent = script_at(tmp_path / "silent", "#!/bin/sh\n")
    with pytest.raises(EngineEnvironmentError, match="could not list its plugins"):
        engine_entry_points(silent)
    with pytest.raises(EngineEnvironmentError, match="could not list its plugins"):
        engine_entry_points(tmp_path / "missing")


def test_an_interpreter_that_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a40console.engines.plugin_folder.LISTING_TIMEOUT_S", 0.2)
    hanging = script_at(tmp_path / "hanging", "#!/bin/sh\nexec sleep 20\n")
    with pytest.raises(EngineEnvironmentError, match="is its disk there"):
        engine_entry_points(hanging)
