"""A user's own DDP script, unchanged, over real SSH servers."""

import json
import shutil
from pathlib import Path

from tests.e2e.conftest import SLOWDOWNS
from tests.running import ROOT, Command, gone, plan_file, run

FIRST, SECOND = SLOWDOWNS
LAUNCH = ("launch", "plan.json", "--allow-plaintext", "--project", "project")


def prepared(folder: Path) -> Path:
    """Trust the devices and plan a cluster of both; the project's folder."""
    for name in SLOWDOWNS:
        assert run(folder, "trust", "--yes", name, HOME=str(folder)).popen.returncode == 0
    plan_file(folder / "plan.json", "cipher", SLOWDOWNS, 10, fingerprint="none")
    project = folder / "project"
    project.mkdir(exist_ok=True)
    shutil.copy(ROOT / "examples/ddp_script.py", project / "train.py")
    return project


def launched(folder: Path, *words: str) -> Command:
    command = run(folder, *words, HOME=str(folder))
    gone(folder)
    return command


def test_a_script_of_torch_distributed_trains_unchanged(ssh_fleet: Path) -> None:
    prepared(ssh_fleet)
    command = launched(ssh_fleet, *LAUNCH, "--", "python", "train.py", "--steps", "20", "--checkpoint", "net.pt")
    assert command.popen.returncode == 0, command.errors
    lines = command.output.splitlines()
    assert f"[{FIRST}] rank 0 of 2 on cpu, 1 threads" in lines
    assert f"[{SECOND}] rank 1 of 2 on cpu, 1 threads" in lines
    losses = [float(line.split()[-1]) for line in lines if line.startswith(f"[{FIRST}] step ")]
    assert len(losses) == 2
    assert len(list(ssh_fleet.glob(f"cache-{FIRST}/planner/project-*/net.pt"))) == 1
    assert not list(ssh_fleet.glob(f"cache-{SECOND}/planner/project-*/net.pt"))


def test_a_rank_that_raises_between_two_steps_ends_the_other_one(ssh_fleet: Path) -> None:
    project = prepared(ssh_fleet)
    source = (project / "train.py").read_text()
    step = "            step += 1\n"
    assert source.count(step) == 1
    raising = step + "            if rank == 1 and step == 3:\n                raise RuntimeError('bad sample')\n"
    (project / "train.py").write_text(source.replace(step, raising))
    command = launched(ssh_fleet, *LAUNCH, "--json", "--", "python", "train.py")
    assert command.popen.returncode == 1
    assert f'File "{project}/train.py"' in command.errors
    assert f"planner: {SECOND} (rank 1) ended with exit code 1: RuntimeError: bad sample" in command.errors
    result = json.loads(command.output)
    assert (result["exit_code"], result["failed"]) == (1, SECOND)
    assert [rank["name"] for rank in result["ranks"]] == list(SLOWDOWNS)
    assert result["ranks"][0]["exit_code"] != 0
