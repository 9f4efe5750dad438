"""A target is judged in its direction, or refused before training, whatever hosts the run."""

import json
import time
from pathlib import Path

import pytest

from planner.paths import RunFolder
from planner.runs.summary import summary
from tests.installed import computes_with
from tests.planner.pairs import KINDS, NAMES, left_files, one_line
from tests.planner.plans import replan
from tests.running import fleet_file, gone, plan_file, run

pytestmark = [pytest.mark.e2e, *computes_with("torch")]

#: Metrics are the loss by other names.
JOB = """
from types import SimpleNamespace
import torch
from torch import nn
from torch.utils.data import TensorDataset

def job():
    x = torch.randn(640, 4, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(x, x.sum(1, keepdim=True))
    mse = nn.functional.mse_loss
    metrics = {"ppl": (mse, "lower", "epoch"), "zork": mse, "foo": (mse, "higher", float)}
    return SimpleNamespace(model=nn.Linear(4, 1), train=data, test=data, loss=mse, metrics=metrics)
"""


def planned(folder: Path, kind: str) -> None:
    settings, names = KINDS[kind]
    (folder / "own.py").write_text(JOB)
    fleet_file(folder, dict.fromkeys(NAMES, {}))
    replan(plan_file(folder / "plan.json", f"{folder}/own.py:job", names, 20, "as it was"), job=True, **settings)


@pytest.mark.parametrize("kind", ["peers", "alone"])
def test_a_target_that_cannot_be_judged_is_refused_before_training(tmp_path: Path, kind: str) -> None:
    planned(tmp_path, kind)
    command = run(tmp_path, "train", "--target", "f1=0.9")
    assert command.popen.returncode != 0
    assert one_line(command) == "planner: --target f1=0.9: an evaluation gives no f1; it gives foo, loss, ppl, zork"
    assert not left_files(tmp_path) and not list((tmp_path / "runs").iterdir())
    gone(tmp_path)


@pytest.mark.parametrize(
    ("kind", "target", "says"),
    [
        ("server", "ppl=1000", "until ppl ≤ 1000"),
        ("peers", "foo=0", "until foo ≥ 0"),
        ("ranks", "zork=0:higher", "until zork ≥ 0"),
    ],
)
def test_a_run_says_its_target_and_ends_there(tmp_path: Path, kind: str, target: str, says: str) -> None:
    planned(tmp_path, kind)
    command = run(tmp_path, "train", "--target", target, "--evaluate-every", "5", "--json")
    assert command.popen.returncode == 0, command.errors
    assert says in command.errors.splitlines()
    result = json.loads(command.output)
    (folder,) = (tmp_path / "runs").iterdir()
    found = summary(RunFolder(folder), time.time()).target
    assert found is not None and found.step is not None
    for each in result["evaluations"]:
        assert each["metrics"] == pytest.approx(dict.fromkeys(("foo", "ppl", "zork"), each["loss"]), rel=1e-5)
