"""A run specification gives the settings of each step, and the remedy where training diverges."""

import pytest

from backends.frameworks.optimizer import OptimizerSettings
from backends.protocol.frames import EVALUATE, STEP
from backends.training.lr_schedule import RateSchedule
from backends.training.run_spec import RunSpec, divergence_reason
from tests.backends.fakes import run_spec

OPTIMIZER = OptimizerSettings(0.2, 0.9, 0.01)


def spec(tmp_path, **changes) -> RunSpec:
    values = {"optimizer": OPTIMIZER, "schedule": RateSchedule("step", 4), **changes}
    return run_spec(tmp_path, 4, **values)


@pytest.mark.parametrize(("kind", "source"), [(STEP, "gradient"), (EVALUATE, "evaluation")])
def test_the_reason_of_divergence_names_step_member_and_remedy(tmp_path, kind, source) -> None:
    reason = divergence_reason(spec(tmp_path), "nano", kind, 7, float("inf"))
    assert reason.startswith(f"training diverged: the {source} at step 7 on nano gave a loss of inf")
    assert reason.endswith("; lower the learning rate of 0.2")


def test_the_learning_rate_is_not_blamed_for_the_first_gradient(tmp_path) -> None:
    reason = divergence_reason(spec(tmp_path), "nano", STEP, 0, float("nan"))
    assert reason.endswith("; the weights are still the initial ones: look at the data, the model and the loss")
