"""The layers hold, and a line in the wrong room is caught."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "a40console"
LINE_LIMIT = 400


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-P", "-c", command, "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(PACKAGE, tmp_path / "a40console", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_the_layers_hold(copy: Path) -> None:
    run = lint_imports(copy)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("model/figures.py", "import a40console.paths"),
        ("engines/ports.py", "import a40console.telemetry"),
        ("gateway/auth.py", "import a40console.service"),
        ("telemetry/windows.py", "import rich"),
        ("service/board.py", "import textual"),
        ("tui/format.py", "import psutil"),
        ("tui/feed.py", "import a40console.link.far"),
        ("tui/feed.py", "import a40console.ledger.store"),
        ("tui/format.py", "import a40console.experiments.registry"),
        ("experiments/sweep.py", "import a40console.ledger.store"),
        ("experiments/client.py", "import a40console.telemetry"),
        ("ledger/comparison.py", "import a40console.experiments.registry"),
        ("ledger/plot_svg.py", "import rich"),
        ("link/ssh.py", "import a40console.service.client"),
        ("link/place.py", "import a40console.engines.ports"),
        ("tui/format.py", "import a40console.engines.ports"),
        ("commands/__init__.py", "import textual"),
        ("operations/status.py", "import a40console.service.board"),
        ("tui/format.py", "import a40console.service.board"),
        ("service/board.py", "import a40console.rehearsal.day"),
        ("rehearsal/exhibit.py", "import a40console.tui.gallery"),
        ("tui/screens/engine.py", "from a40console.service.probe import probe_request"),
        ("engines/process.py", "import a40console.vllm_plugin"),
        ("paths.py", "import a40console.vllm_plugin.shared"),
        ("log.py", "import a40console.vllm_plugin.shared"),
        ("vllm_plugin/rows.py", "import a40console.model.figures"),
    ],
)
def test_an_import_against_the_layers_fails(copy: Path, module: str, line: str) -> None:
    file = copy / "a40console" / module
    file.write_text(f"{file.read_text()}\n{line}\n")
    run = lint_imports(copy)
    assert run.returncode != 0, run.stdout
    assert "BROKEN" in run.stdout


def test_a_room_that_no_layer_names_fails(copy: Path) -> None:
    (copy / "a40console" / "attic.py").write_text('"""Nobody placed me."""\n')
    run = lint_imports(copy)
    assert run.returncode != 0, run.stdout


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_modules_stay_small() -> None:
    long = {path.name: n for path in modules() if (n := len(path.read_text().splitlines())) > 400}
    assert not long


def test_the_model_needs_the_standard_library_only() -> None:
    for path in (PACKAGE / "model").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for name in names:
                top = name.split(".")[0]
                assert top == "a40console" or top in sys.stdlib_module_names, (path.name, name)


def test_the_keeper_needs_the_standard_library_only() -> None:
    tree = ast.parse((PACKAGE / "engines" / "keeper.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert all(a.name.split(".")[0] in sys.stdlib_module_names for a in node.names)
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] in sys.stdlib_module_names


def test_every_dependency_that_runs_with_us_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    }
    for requirement in project["dependencies"]:
        name = requirement.split(";")[0].split("[")[0]
        for mark in "<>=!~ ":
            name = name.split(mark)[0]
        assert name.lower().replace("_", "-") in pinned, name


def test_every_package_that_is_imported_is_declared() -> None:
    """What only the tests install is missing on an operator's machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = [
        *project["dependencies"],
        *(row for key in extras if key != "dev" for row in extras[key]),
    ]
    declared = {re.split(r"[^\w.-]", row)[0].replace("_", "-").lower() for row in named}
    homes = packages_distributions()
    missing = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in modules()
        if "vllm_plugin" not in path.parts
        for name in imported(path)
        if name not in sys.stdlib_module_names
        and name != "a40console"
        and not declared & {home.replace("_", "-").lower() for home in homes.get(name, [name])}
    }
    assert missing == set()


def imported(path: Path) -> set[str]:
    """The packages that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("names", ["engine-tests.txt", "client-tests.txt"])
def test_every_test_that_must_run_is_there(names: str) -> None:
    listed = (ROOT / ".ci" / names).read_text().split()
    assert listed
    for name in listed:
        file, _, test = name.partition("::")
        text = (ROOT / file).read_text()
        assert re.search(rf"^(async )?def {test}\(", text, re.MULTILINE), name
