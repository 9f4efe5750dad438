"""A user's own DDP script, unchanged, over real SSH servers."""

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planner.launch.commands import PORT
from profilers.addresses_and_ports import free_port
from tests.e2e.conftest import SLOWDOWNS
from tests.running import HANG_S, ROOT, Command, call, fleet_file, gone, plan_file, run

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
    (written,) = ssh_fleet.glob(f"cache-{FIRST}/planner/project-*/net.pt")
    assert not list(ssh_fleet.glob(f"cache-{SECOND}/planner/project-*/net.pt"))
    assert right_share(written) > 0.8  # half of all points lie on either side


def right_share(weights: Path) -> float:
    """The share of the script's points that its network puts on the right side."""
    torch = pytest.importorskip("torch")
    linear = torch.nn.Linear
    network = torch.nn.Sequential(linear(20, 64), torch.nn.ReLU(), linear(64, 2))
    network.load_state_dict(torch.load(weights))
    points, sides = runpy.run_path(str(ROOT / "examples/ddp_script.py"))["synthetic"](4096).tensors
    share: float = (network(points).argmax(1) == sides).float().mean().item()
    return share


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


def test_the_commands_for_torchrun_train_as_they_are_printed(tmp_path: Path) -> None:
    """Two nodes on this machine: members that see the same GPU, which there is none of."""
    shared = {"python": sys.executable, "data_address": "127.0.0.1", "environment": {"CUDA_VISIBLE_DEVICES": "-1"}}
    fleet_file(tmp_path, {"tx2": shared, "nano": shared})
    plan_file(tmp_path / "plan.json", "cipher", ("tx2", "nano"), 10, fingerprint="none")
    command = ("launch", "plan.json", "--print", "torchrun", "--", "python", str(ROOT / "examples/ddp_script.py"))
    text = call(tmp_path, *command, "--steps", "10").out.replace(str(PORT), str(free_port()))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    nodes = [
        subprocess.Popen(line, shell=True, cwd=tmp_path, stdout=subprocess.PIPE, text=True)  # noqa: S602 - as a user
        for line in lines
    ]
    outputs = [node.communicate(timeout=HANG_S)[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0]
    assert "rank 0 of 2" in outputs[0] and "rank 1 of 2" in outputs[1]
