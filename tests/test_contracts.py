"""Who may import whom, what runs on Python 3.6, and what the command line costs to load."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(sys.executable).parent
SHIPPED = ("profilers", "backends")
# Everything else that a device runs comes with its Python.
ON_DEVICE = sys.stdlib_module_names | {"numpy", *SHIPPED}
FRAMEWORKS = {"backends/pytorch": {"torch"}, "backends/tensorflow": {"tensorflow"}}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def imported(path: Path) -> set[str]:
    """Top-level names of every import in a file, those inside functions too."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    members = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return {name.partition(".")[0] for name in plain | members}


def test_imports_keep_the_contracts() -> None:
    done = run(TOOLS / "lint-imports", "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_name_of_a_class_is_used_once() -> None:
    names = Counter(
        node.name
        for package in ("planner", "power_models", *SHIPPED)
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_what_ships_to_devices_is_written_for_python_36() -> None:
    done = run(TOOLS / "vermin", "-t=3.6-", "--violations", "--eval-annotations", "--no-tips", *SHIPPED)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("package", SHIPPED)
def test_what_ships_to_devices_needs_numpy_and_a_framework_at_most(package: str) -> None:
    foreign = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        name = path.relative_to(ROOT)
        if extra := imported(path) - ON_DEVICE - FRAMEWORKS.get(name.parent.as_posix(), set()):
            foreign[name.as_posix()] = sorted(extra)
    assert foreign == {}


def test_the_command_line_loads_nothing_heavy() -> None:
    heavy = {"torch", "tensorflow", "pandas", "sklearn", "paramiko"}
    done = run(sys.executable, "-c", "import planner.cli.main, sys; print(*sys.modules)")
    assert done.returncode == 0, done.stderr
    assert heavy.isdisjoint(done.stdout.split())
