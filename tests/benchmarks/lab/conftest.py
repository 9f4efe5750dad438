"""A lab is built only where Linux, root and its programs allow it."""

import os
from pathlib import Path

import pytest

from benchmarks.lab import cgroups, programs
from benchmarks.lab.errors import LabError


@pytest.fixture(scope="session")
def lab_machine() -> None:
    """Skips, saying why, where no lab can be built; on a machine of CI that is a failure."""
    try:
        programs.require_machine()
        groups = cgroups.mounted(Path("/proc/self/mountinfo").read_text())
        probe = f"planner-test-{os.getpid()}"  # no lab's
        groups.make(probe)
        groups.remove(probe)
    except LabError as error:
        if "CI" in os.environ and os.geteuid() == 0:
            pytest.fail(str(error))
        pytest.skip(str(error))
