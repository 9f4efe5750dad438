"""Every optimizer that can be named is built, and keeps what checkpoints call by name."""

import numpy as np
import pytest

from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import OWN, SLOT_NAMES, GradientSettings, OptimizerSettings, slot_shapes
from backends.optimizers.registry import OPTIMIZERS, build

VARIABLES = (Variable("w", (2, 2), 0, 4), Variable("b", (2,), 4, 2))


def test_every_optimizer_is_known_by_its_slots():
    assert set(OPTIMIZERS) == set(SLOT_NAMES) - {OWN}  # which a job brings


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_new_one_keeps_zeros_and_a_step_goes_downhill(kind):
    optimizer = build(kind, VARIABLES)
    assert tuple(optimizer.slots) == SLOT_NAMES[kind]
    assert [values.shape for values in optimizer.slots.values()] == slot_shapes(kind, 6)
    assert all(values.dtype == np.float32 and not values.any() for values in optimizer.slots.values())
    weights = np.ones(6, np.float32)
    optimizer.apply(weights, np.ones(6, np.float32), OptimizerSettings(0.1, kind=kind))
    assert (weights < 1).all()


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_gradients_of_sgd_alone_include_rate_and_weight_decay(kind):
    expected = GradientSettings(0.1, 0.2, 3.0) if kind == "sgd" else GradientSettings(clip_norm=3.0)
    assert OptimizerSettings(0.1, 0.9, 0.2, kind, clip_norm=3.0).in_gradients == expected
