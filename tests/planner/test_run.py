"""From a request to a run: which checkpoints a run can go on from."""

from pathlib import Path

import numpy as np
import pytest

from backends import checkpoint
from backends.base import Variable
from backends.layout import Layout
from planner.errors import PlanError
from planner.run import _check_checkpoint
from planner.runs import RunFolder
from tests.planner.plans import plan, planned


def saved(folder: Path, step: int, *evaluated: int, model: str = "net") -> RunFolder:
    one = np.ones(1, np.float32)
    evaluations = [{"step": each} for each in evaluated]
    meta = {"model": model, "framework": "torch", "step": step, "evaluations": evaluations}
    variables = (Variable("w", (1,), 0, 1),)
    content = checkpoint.Checkpoint(one, one, np.empty(0, np.float32), meta)
    run = RunFolder(folder)
    checkpoint.write(str(run.checkpoint), content, Layout(variables, ()))
    return run


@pytest.mark.parametrize(("step", "evaluated"), [(60, ()), (60, (50,)), (100, ()), (100, (50,))])
def test_steps_or_the_last_evaluation_are_left(tmp_path: Path, step: int, evaluated: tuple[int, ...]) -> None:
    _check_checkpoint(plan(planned("a"), steps=100), saved(tmp_path, step, *evaluated))


@pytest.mark.parametrize(("step", "evaluated"), [(100, (50, 100)), (120, (100,)), (120, ())])
def test_nothing_is_left(tmp_path: Path, step: int, evaluated: tuple[int, ...]) -> None:
    with pytest.raises(PlanError, match=f"all its {step} steps; give more with --steps"):
        _check_checkpoint(plan(planned("a"), steps=100), saved(tmp_path, step, *evaluated))


def test_a_known_model_goes_on_in_another_framework_and_a_model_of_the_users_own_does_not(tmp_path: Path) -> None:
    other = plan(planned("a"), steps=100)._replace(framework="tensorflow")
    _check_checkpoint(other, saved(tmp_path, 60))
    own = saved(tmp_path, 60, model="net.py:net")
    _check_checkpoint(plan(planned("a"), steps=100)._replace(model="net.py:net"), own)
    with pytest.raises(PlanError, match="net.py:net in torch, the plan computes with tensorflow; .*--framework torch"):
        _check_checkpoint(other._replace(model="net.py:net"), own)
