"""`planner launch`: what is refused before a device is contacted, and what is only printed."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.planner.cli.commands import Planner
from tests.running import plan_file

FLEET = '[devices.a]\naddress = "big"\n\n[devices.b]\naddress = "small"\n'


@pytest.fixture
def planned(planner: Planner) -> Planner:
    """A plan of two devices that are not there, and a script."""
    Path("fleet.toml").write_text(FLEET)
    Path("train.py").touch()
    plan_file(Path("plan.json"), "cipher", ("a", "b"), 10, fingerprint="none")
    return planner


def test_a_network_must_be_trusted_as_nothing_is_encrypted(planned: Planner) -> None:
    problem = planned("launch", "plan.json", "--", "python", "train.py").problem()
    assert problem.startswith("launch: torch.distributed has no encryption") and "--allow-plaintext" in problem


@pytest.mark.parametrize("command", [("python", "nets/train.py", "-x"), ("./train.sh",), ("python", "-u", "nope.py")])
def test_a_script_that_is_not_in_the_project_is_named(planned: Planner, command: tuple[str, ...]) -> None:
    problem = planned("launch", "plan.json", "--allow-plaintext", "--", *command).problem()
    assert f" is not in {Path.cwd()}, or is left out of what is sent" in problem and "--project" in problem


def test_commands_for_torchrun_and_slurm_are_printed(planned: Planner) -> None:
    ran = planned("launch", "plan.json", "--print", "torchrun", "--", "python", "train.py", "--lr", "1")
    assert (ran.code, ran.err) == (0, "")
    assert [line.rpartition("=")[2] for line in ran.out.splitlines() if not line.startswith("#")] == [
        "0 train.py --lr 1"
    ] * 2
    ran = planned("launch", "plan.json", "--print", "slurm", "--", "python", "train.py")
    assert ran.out.startswith("#!/bin/bash\n#SBATCH ") and f"--chdir={Path.cwd()}\n" in ran.out


def test_the_commands_are_followed_by_the_one_that_brings_the_file_of_batches(planned: Planner) -> None:
    Path("src").mkdir()
    words = ("launch", "plan.json", "--print", "torchrun", "--", "python", "src/train.py")
    copy = planned(*words).out.splitlines()[-1].rpartition(": ")[2]
    subprocess.run(shlex.split(copy), cwd="/", check=True)
    assert "ProportionalSampler" in Path("src/planner_batches.py").read_text()
    assert copy not in planned(*words).out


def test_an_unknown_scheduler_is_answered_with_those_that_are_known(planned: Planner) -> None:
    problem = planned("launch", "plan.json", "--print", "slrum", "--", "x").problem()
    assert problem == '--print slrum: unknown; did you mean "slurm"? (known: torchrun, slurm)'


def test_a_member_that_has_left_the_fleet_is_named(planned: Planner) -> None:
    plan = json.loads(Path("plan.json").read_text())
    plan["workers"][1]["name"] = "gone"
    Path("plan.json").write_text(json.dumps(plan))
    assert 'no device "gone"' in planned("launch", "plan.json", "--print", "torchrun", "--", "x").problem()
