"""Claims hold while their process runs, however it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backends.agent.claims import PREFIX, Claims, claimed, is_claimed, remove_dead
from tests.running import ROOT

#: Another process, which claims a name and then waits for its input to end.
CLAIMING = """
import sys
from backends.agent.claims import Claims
claims = Claims(sys.argv[1])
claims.add("run-1-checkpoint.npz")
print("claimed", flush=True)
sys.stdin.read()
"""


def names(cache: Path) -> set[str]:
    """The names that are claimed, without those of the files that tell so."""
    return {name for name in claimed(str(cache)) if not name.startswith(PREFIX)}


def test_names_are_claimed_until_they_are_given_up(tmp_path: Path) -> None:
    first, second = Claims(str(tmp_path)), Claims(str(tmp_path))
    assert claimed(str(tmp_path)) == set()
    for claims, name in ((first, "data-1.npz"), (first, "data-1.npz"), (first, "project-ü"), (second, "model-1")):
        claims.add(name)
    assert names(tmp_path) == {"data-1.npz", "project-ü", "model-1"}
    first.release()
    assert names(tmp_path) == {"model-1"}
    first.add("data-2.npz")
    assert names(tmp_path) == {"model-1", "data-2.npz"}
    first.release()
    second.release()
    second.release()
    assert os.listdir(tmp_path) == []


def test_a_process_that_is_killed_claims_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CLAIMING, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None and process.stdout.readline() == b"claimed\n"
        assert names(tmp_path) == {"run-1-checkpoint.npz"}
        process.kill()
        process.wait()
    assert claimed(str(tmp_path)) == set()
    assert len(os.listdir(tmp_path)) == 1
    with_others = Claims(str(tmp_path))
    with_others.add("data-1.npz")
    remove_dead(str(tmp_path))
    assert names(tmp_path) == {"data-1.npz"} and len(os.listdir(tmp_path)) == 1


def test_a_cache_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    claims = Claims(str(tmp_path / "none"))
    claims.add("data-1.npz")
    claims.release()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("data-1.npz", True),
        ("data-1.npz.4711", True),
        ("project-1", True),
        ("project-1.1769860800000000", True),
        ("project-12", False),
        ("data-1", False),
        ("data-2.npz", False),
    ],
)
def test_what_is_made_of_a_claimed_name_is_claimed_too(name: str, expected: bool) -> None:
    assert is_claimed(name, {"data-1.npz", "project-1"}) is expected


def test_a_pipe_that_is_named_like_a_claim_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "claims-12345678")
    remove_dead(str(tmp_path))
    assert claimed(str(tmp_path)) == set()
