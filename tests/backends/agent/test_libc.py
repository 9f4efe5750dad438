import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
from backends.agent import libc
from profilers import process_memory
if "keep" in sys.argv:
    assert libc.keep_freed_memory()
if "large" in sys.argv:
    process_memory.return_large_arrays()
def step():
    return [b"x" * 5_000_000 for _ in range(20)]
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*arguments: str) -> int:
    found = subprocess.run([sys.executable, "-c", FAULTS, *arguments], capture_output=True, text=True, check=True)
    return int(found.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc is told to keep memory")
def test_a_step_finds_the_memory_of_the_one_before() -> None:
    pages = 20 * 5_000_000 // 4096
    assert faults() > pages / 2  # else there is nothing to gain
    assert faults("keep") < pages / 100
    assert faults("keep", "large") > pages / 2
