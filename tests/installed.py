"""Which frameworks this machine has, as parameters of tests that hold for any.

Tests of an absent framework are skipped, and the reason names it.
"""

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from backends.frameworks.base import FRAMEWORKS
from tests.running import HANG_S

ROOT = Path(__file__).resolve().parent.parent
#: Names another than the one that `make old-python` makes.
OLD_PYTHON = "PLANNER_PYTHON36"


def needs(*frameworks: str) -> pytest.MarkDecorator:
    """Skips a test where one of these frameworks is absent."""
    return pytest.mark.needs(*frameworks)


def mark_needs(item: pytest.Item) -> None:
    """What ``needs`` asks for: a test with TensorFlow is of its tier."""
    frameworks = dict.fromkeys(name for mark in item.iter_markers("needs") for name in mark.args)
    if absent := [name for name in frameworks if name in FRAMEWORKS and find_spec(name) is None]:
        item.add_marker(pytest.mark.skip(reason=f"not installed: {', '.join(absent)}"))
    if "tensorflow" in frameworks:
        item.add_marker("tensorflow")


def computes_with(*frameworks: str) -> list[pytest.MarkDecorator]:
    """Marks of a test that imports these frameworks into its own process.

    One process runs all tests of a framework, because an import takes seconds and hundreds of
    megabytes.
    """
    slowest_import = next((name for name in ("tensorflow", "torch") if name in frameworks), None)
    groups = [pytest.mark.xdist_group(slowest_import)] if slowest_import else []
    return [needs(*frameworks), *groups]


def using(*frameworks: str) -> Any:
    """A parameter for a test that computes with these frameworks: their names.

    "numpy" stands for a test that needs none of them.
    """
    return pytest.param(frameworks, marks=computes_with(*frameworks), id="+".join(frameworks))


#: Each framework by itself, and a cluster of them all.
EACH = [using(name) for name in FRAMEWORKS]
MIXED = using(*FRAMEWORKS)


def old_path() -> Path:
    """Where a Python 3.6 with TensorFlow is, if there is one."""
    return Path(os.environ.get(OLD_PYTHON) or ROOT / ".venv36/bin/python")


def old_python() -> Path:
    """A Python 3.6 with a TensorFlow of its time. Skips, with the reason, where there is none."""
    path = old_path()
    asked = "import sys, importlib.util as i; sys.exit(sys.version_info[:2] != (3, 6) or not i.find_spec('tensorflow'))"
    if not path.exists():
        pytest.skip(
            f"no Python 3.6 with TensorFlow here: no {path} (`make old-python` makes it, {OLD_PYTHON} names one)"
        )
    done = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=False, timeout=HANG_S)
    if done.returncode:
        pytest.skip(f"{path} is no Python 3.6 with TensorFlow {done.stderr.strip()[-200:]}")
    return path
