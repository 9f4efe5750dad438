"""A run computes in the precision of its plan, over either engine."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from profilers.records.steps import ComputeSettings
from tests.installed import needs
from tests.planner.pairs import one_line, run_folders, training
from tests.planner.plans import replan
from tests.running import call, fleet_file, plan_file, run

NAMES = ("desktop", "tx2")
#: Its every training step tells which type the layer computes with.
MODEL = """
import sys
from torch import nn

class Telling(nn.Linear):
    def forward(self, x):
        found = super().forward(x)
        if self.training and found.requires_grad:
            with open({told!r}, "a") as file:
                file.write(str(found.dtype) + chr(10))
        return found

def tiny():
    return nn.Sequential(nn.Flatten(), Telling(28 * 28, 10)), (28, 28, 1)
"""


def planned(folder: Path, precision: str, **settings: str) -> Path:
    """A folder with a fleet of two devices and a plan for both in a precision."""
    fleet_file(folder, {name: {"environment": {"OMP_NUM_THREADS": "1"}} for name in NAMES})
    (folder / "tiny.py").write_text(MODEL.format(told=str(folder / "told")))
    plan_file(folder / "plan.json", f"{folder}/tiny.py:tiny", NAMES, 30)
    replan(folder, compute=ComputeSettings(0, precision), **settings)
    return folder


@pytest.mark.e2e
@needs("torch")
@pytest.mark.parametrize("how", [{"engine": "torch", "strategy": "allreduce"}, {}, {"strategy": "allreduce"}])
def test_members_compute_in_bfloat16_and_keep_float32_weights(tmp_path: Path, how: dict[str, str]) -> None:
    slowly = training("--heartbeat", "60", "--momentum", "0", "--json")
    command = run(planned(tmp_path, "bf16", **how), *slowly)
    assert command.popen.returncode == 0, command.errors
    assert json.loads(command.output)["evaluations"][-1]["loss"] < math.log(10)  # that of guesses among ten classes
    assert set((tmp_path / "told").read_text().split()) == {"torch.bfloat16"}
    with np.load(run_folders(tmp_path)[0] / "checkpoint.npz") as saved:
        kinds = {saved[name].dtype for name in saved.files if saved[name].dtype.kind == "f"}
    assert kinds == {np.dtype(np.float32)}


def test_torch_distributed_does_not_scale_a_loss(tmp_path: Path) -> None:
    called = call(planned(tmp_path, "fp16", engine="torch", strategy="allreduce"), *training())
    assert called.code == 1
    line = called.last_line
    assert "--engine torch: fp16 scales its loss, which it cannot do here; profile with --precision bf16 or" in line


@pytest.mark.e2e
@needs("torch")
def test_a_device_that_cannot_compute_in_the_plan_s_precision_ends_the_run_with_one_line(tmp_path: Path) -> None:
    command = run(planned(tmp_path, "fp16"), *training("--heartbeat", "60"))
    assert command.popen.returncode == 1
    assert "fp16 needs a GPU, and torch computes on the processor here; profile it with" in one_line(command)
