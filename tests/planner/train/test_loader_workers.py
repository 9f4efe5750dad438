"""Worker processes of a job's DataLoader end with the run, also where its agents are killed."""

import contextlib
import os
import signal
from pathlib import Path

import pytest

from tests.installed import computes_with
from tests.planner.plans import replan
from tests.running import Command, agents, fleet_file, gone, plan_file, run, signal_all, until

pytestmark = [pytest.mark.e2e, *computes_with("torch")]

JOB = """
from types import SimpleNamespace
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __init__(self):
        self.x = torch.randn(640, 4, generator=torch.Generator().manual_seed(1))
    def __len__(self):
        return len(self.x)
    def __getitem__(self, place):
        return self.x[place], self.x[place].sum()[None]

def job():
    made = dict(batch_size=7, num_workers=2)
    return SimpleNamespace(model=nn.Linear(4, 1), train=DataLoader(Numbers(), shuffle=True, **made),
                           test=DataLoader(Numbers(), **made), loss=nn.functional.mse_loss)
"""
NOTE = (
    "train is a DataLoader: batches of the plan take the place of its own, and 2 workers read it, "
    "in the order of its RandomSampler; "
    "test is a DataLoader: batches of the plan take the place of its own, and 2 workers read it"
)


def planned(folder: Path, steps: int) -> None:
    (folder / "own.py").write_text(JOB)
    fleet_file(folder, {"desktop": {}, "tx2": {}})
    path = plan_file(folder / "plan.json", f"{folder}/own.py:job", ("desktop", "tx2"), steps, "as it was")
    replan(path, job=True, strategy="parameter-server")


def test_a_run_says_how_it_reads_a_loader_and_leaves_no_worker_behind(tmp_path: Path) -> None:
    planned(tmp_path, 40)
    command = run(tmp_path, "train")
    assert command.popen.returncode == 0, command.errors
    assert command.errors.splitlines().count(NOTE) == 1
    gone(tmp_path)


def test_workers_hold_no_stream_of_their_agent_and_end_when_it_is_killed(tmp_path: Path) -> None:
    planned(tmp_path, 10**6)
    command = Command(tmp_path, "train", "--evaluate-every", "1000000")
    command.says("tx2 joined")  # the workers with which the job was tried are gone then
    until(lambda: len(agents(tmp_path, "tx2")) == 3, lambda: command.errors)
    agent, *workers = agents(tmp_path, "tx2")
    streams = {each for each in held(agent) & held(command.popen.pid) if each.startswith("pipe:")}
    streams.remove(os.readlink(f"/proc/{agent}/fd/2"))  # where workers may print
    assert len(streams) == 2
    until(lambda: not any(streams & held(worker) for worker in workers), lambda: f"{streams} in {workers}")
    signal_all([agent], signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in (agent, *workers)), lambda: command.errors)
    command.popen.kill()
    gone(tmp_path)


def held(pid: int) -> set[str]:
    """What a process has open."""
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it may be closed meanwhile
            found.add(os.readlink(entry))
    return found
