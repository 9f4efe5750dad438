"""A run specification gives the settings of each step, and the remedy where training diverges."""

import pytest

from backends.frameworks.optimizer import OptimizerSettings
from backends.hosting.step_queue import WorkItem, resumed_queue
from backends.protocol.frames import EVALUATE, STEP
from backends.training.lr_schedule import RateSchedule
from backends.training.run_spec import RunSpec, divergence_reason, last_evaluated
from tests.backends.fakes import run_spec

OPTIMIZER = OptimizerSettings(0.2, 0.9, 0.01)


def spec(tmp_path, **changes) -> RunSpec:
    values = {"optimizer": OPTIMIZER, "schedule": RateSchedule("step", 4), **changes}
    return run_spec(tmp_path, 4, **values)


def test_the_rate_of_a_step_is_that_of_the_schedule(tmp_path) -> None:
    rates = [spec(tmp_path).optimizer_at(step).rate for step in range(4)]
    assert rates == pytest.approx([0.2, 0.2, 0.02, 0.002])


@pytest.mark.parametrize(("evaluations", "step"), [([], 0), ([{"step": 2}, {"step": 3}], 3)])
def test_the_last_evaluation_is_that_of_the_checkpoint(evaluations, step) -> None:
    assert last_evaluated({"evaluations": evaluations}) == step


def test_a_resumed_queue_goes_on_after_the_steps_of_the_checkpoint(tmp_path) -> None:
    queue = resumed_queue(spec(tmp_path), {"step": 3, "evaluations": []})
    assert queue.take("a") == WorkItem(STEP, 3)
    with pytest.raises(ValueError, match="5 steps are done already"):
        resumed_queue(spec(tmp_path), {"step": 5, "evaluations": []})


@pytest.mark.parametrize(("kind", "source"), [(STEP, "gradient"), (EVALUATE, "evaluation")])
def test_the_reason_of_divergence_names_step_member_and_remedy(tmp_path, kind, source) -> None:
    reason = divergence_reason(spec(tmp_path), "nano", kind, 7, float("inf"))
    assert reason.startswith(f"training diverged: the {source} at step 7 on nano gave a loss of inf")
    assert reason.endswith("; lower the learning rate of 0.2")


def test_the_learning_rate_is_not_blamed_for_the_first_gradient(tmp_path) -> None:
    reason = divergence_reason(spec(tmp_path), "nano", STEP, 0, float("nan"))
    assert reason.endswith("; the weights are still the initial ones: look at the data, the model and the loss")
