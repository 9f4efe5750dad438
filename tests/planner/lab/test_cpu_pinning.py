import os
import subprocess

from hypothesis import given
from hypothesis import strategies as some

from planner.lab.cpu_pinning import assign_cores, pin


def test_the_largest_has_a_core_of_its_own_and_the_others_share_what_is_left() -> None:
    assert assign_cores({"tx1": 0.2, "pc": 0.8, "tx2": 0.4}, [0, 1]) == {"pc": 0, "tx2": 1, "tx1": 1}


def test_whoever_does_not_fit_leaves_all_of_them_to_the_scheduler() -> None:
    assert assign_cores({"a": 1.5, "b": 0.1}, [0, 1]) == {}
    assert assign_cores({"a": 0.7, "b": 0.7, "c": 0.6}, [0, 1]) == {}


@given(some.dictionaries(some.sampled_from("abcdefg"), some.floats(0.05, 1.2)), some.integers(1, 4))
def test_no_core_is_promised_more_than_it_has(cpus: dict[str, float], cores: int) -> None:
    found = assign_cores(cpus, range(cores))
    assert not found or found.keys() == cpus.keys()
    for core in range(cores):
        assert sum(cpus[name] for name, at in found.items() if at == core) <= 1 + 1e-6


def test_a_pinned_process_keeps_to_its_core() -> None:
    core = min(os.sched_getaffinity(0))
    process = subprocess.Popen(["sleep", "60"])
    try:
        pin(process.pid, {core})
        assert os.sched_getaffinity(process.pid) == {core}
    finally:
        process.kill()
        process.wait()
    pin(process.pid, {core})  # one that has gone is no matter
