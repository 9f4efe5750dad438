"""An error of the user's job ends a run as Ctrl-C does: what was trained is saved and named."""

import json
import re
from pathlib import Path

import pytest

from tests.installed import computes_with
from tests.planner.pairs import KINDS, NAMES, left_files, one_line, run_folders, saved_step
from tests.planner.plans import replan
from tests.running import fleet_file, gone, plan_file, run

pytestmark = [pytest.mark.chaos, *computes_with("torch")]

STEPS = 40
#: The function counts its own calls, and fails in one of them on the devices that are named.
JOB = """
import os
from types import SimpleNamespace
import torch
from torch import nn
from torch.utils.data import Dataset

FAILS_IN, CALL, ON = {fails_in!r}, {call}, {on!r}
calls = {{}}

def count(what):
    calls[what] = calls.get(what, 0) + 1
    if what == FAILS_IN and calls[what] == CALL and any(os.environ["PLANNER_TEST_DEVICE"].endswith(n) for n in ON):
        {failure}

class Numbers(Dataset):
    def __init__(self, size, what):
        self.x = torch.randn(size, 4, generator=torch.Generator().manual_seed(size))
        self.what = what
    def __len__(self):
        return len(self.x)
    def __getitem__(self, place):
        count(self.what)
        return self.x[place], self.x[place].sum()[None]

def loss(outputs, targets):
    trains = torch.is_grad_enabled()
    count("loss" if trains else "evaluation" if calls.get("loss", 0) > 2 else "preparation")
    return nn.functional.mse_loss(outputs, targets)

def mae(outputs, targets):
    count("metric")
    return {metric}

def job():
    return SimpleNamespace(
        model=nn.Linear(4, 1), train=Numbers(640, "data"), test=Numbers(32, "test"), loss=loss, metrics={{"mae": mae}}
    )
"""


def new_run(
    folder: Path, kind: str, fails_in: str = "", call: int = 0, failure: str = 'raise KeyError("lost")',
    on: tuple[str, ...] = NAMES, metric: str = "(outputs - targets).abs().mean()", steps: int = STEPS,
) -> None:  # fmt: skip
    settings, names = KINDS[kind]
    (folder / "own.py").write_text(JOB.format(fails_in=fails_in, call=call, failure=failure, on=on, metric=metric))
    fleet_file(folder, dict.fromkeys(NAMES, {}))
    path = plan_file(folder / "plan.json", f"{folder}/own.py:job", names, steps, "as it was")
    replan(path, job=True, **settings)


def train(folder: Path, *arguments: str):  # type: ignore[no-untyped-def]
    return run(folder, "train", "--heartbeat", "2", *arguments)


def failed(folder: Path) -> tuple[str, int]:
    """The message of the run, and the step that it saved."""
    command = train(folder, "--evaluate-every", "5")
    assert command.popen.returncode == 1, command.errors
    message = one_line(command)
    assert (folder / "runs").exists(), message
    (made,) = run_folders(folder)
    assert [path.name for path in made.iterdir() if path.suffix == ".part"] == []
    assert not left_files(folder)
    gone(folder)
    return message, saved_step(made)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("fails_in", "call"), [("loss", 8), ("evaluation", 1), ("data", 90)])
def test_what_was_trained_before_an_error_is_saved_and_goes_on(
    tmp_path: Path, kind: str, fails_in: str, call: int
) -> None:
    new_run(tmp_path, kind, fails_in, call)
    message, step = failed(tmp_path)
    assert re.search(r"planner: (desktop|tx2): KeyError: 'lost', at .*own.py:\d+;", message), message
    (first,) = run_folders(tmp_path)
    assert (
        step > 0
        and f"checkpoint.npz of step {step}, go on with `planner train --resume {first.relative_to(tmp_path)}`"
        in message
    )
    new_run(tmp_path, kind)
    again = train(tmp_path, "--resume", str(first), "--json")
    assert again.popen.returncode == 0, again.errors
    assert json.loads(again.output)["steps_made"] >= STEPS - step
