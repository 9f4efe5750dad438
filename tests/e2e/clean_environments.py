"""New environments that hold some packages and what these need, and nothing of this program."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.running import HANG_S, ROOT

CONSTRAINTS = ROOT / "constraints.txt"
#: Of names of packages; gives the Python of an environment that has them.
CleanPython = Callable[..., Path]


def environment(folder: Path, packages: tuple[str, ...]) -> Path:
    """Install into a new environment. Skips, with the reason, where no package can be had."""
    python = folder / "bin" / "python"
    constrained = ("-c", CONSTRAINTS, *packages)
    if shutil.which("uv"):
        steps = [
            ("uv", "venv", "--allow-existing", "--python", sys.executable, folder),
            ("uv", "pip", "install", "--python", python, *constrained),
        ]
    else:
        steps = [
            (sys.executable, "-m", "venv", folder),
            (python, "-m", "pip", "install", *constrained),
        ]
    links = {"UV_FIND_LINKS": ",".join(os.environ.get("PIP_FIND_LINKS", "").split())}  # as in the Makefile
    for step in steps:
        done = subprocess.run(
            step, env={**os.environ, **links}, capture_output=True, text=True, check=False, timeout=HANG_S
        )
        if done.returncode and "CI" not in os.environ:
            pytest.skip(f"cannot install {', '.join(packages)}: {done.stderr.strip()[-200:]}")
        assert done.returncode == 0, done.stderr
    return python
