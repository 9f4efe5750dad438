"""What one standard error of a measured mean changes in the time and power of a cluster."""

import numpy as np
import pytest

from planner.predict.costs import Costs, costs_of
from planner.predict.device_costs import DeviceErrors
from tests.planner import profiles
from tests.planner.predictions import everything, index, known

#: The arrays that hold each measured mean.
ARRAYS = {
    "gradient": ("gradient_s",), "copy": ("copy_s",), "update": ("update_s",), "service": ("service_s",),
    "link": ("up_s", "down_s"), "idle_w": ("idle_w",), "busy_w": ("busy_w",),
}  # fmt: skip


def shaken(costs: Costs, mean: str, device: int, by: float) -> Costs:
    """The same costs with one measured mean of one device changed by a share."""
    scale = np.ones(len(costs.names))
    scale[device] = 1 + by
    arrays = {**costs.devices._asdict(), **costs.pairs._asdict()}
    return profiles.with_costs(costs, **{name: (arrays[name].T * scale).T for name in ARRAYS[mean]})


@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("mean", ARRAYS)
@pytest.mark.parametrize("count_idle", [False, True])
def test_errors_are_what_a_small_change_of_a_mean_brings(mean: str, device: int, count_idle: bool) -> None:
    """Held against predictions of changed means, where next to nothing queues."""
    error, step = 0.01, 1e-6
    two = known(1.0, 2.0, copy_s=profiles.seconds(0.3), service_s=profiles.seconds(0.001))
    errors = DeviceErrors(*[np.full(2, error)] * len(DeviceErrors._fields))
    two = profiles.with_costs(two, errors=errors, error=np.full((2, 2), error))
    found = everything(two, count_idle=count_idle)
    more, less = (everything(shaken(two, mean, device, by), count_idle=count_idle) for by in (step, -step))
    for field, errors in (("time_s", found.time_errors), ("power_w", found.power_errors)):
        change = np.log(getattr(more, field) / getattr(less, field)) / (2 * step)
        assert getattr(errors, mean)[:, device] / error == pytest.approx(change, abs=1e-4)


def test_watts_of_members_err_by_the_time_spent_at_them() -> None:
    two = known(1e9, 0.1)
    errors = two.devices.errors._replace(idle_w=np.full(2, 0.02), busy_w=np.full(2, 0.01))
    two = profiles.with_costs(two, errors=errors)
    found = everything(two)
    i = index(found, two, "ab", "a")
    busy = 0.1 / (0.1 + 0.08 + 0.002 + 0.08)
    assert found.power_errors.idle_w[i, 1] == pytest.approx(0.02 * 10 * (1 - busy) / found.power_w[i])
    assert found.power_errors.busy_w[i, 1] == pytest.approx(0.01 * 50 * busy / found.power_w[i])
    alone = index(found, two, "b", "b")
    assert found.power_errors.at(np.array([alone])).variance() == pytest.approx(0.01**2)


def test_errors_of_unknown_watts_are_none() -> None:
    devices = {"a": profiles.device(profiles.step(spread=0.1)), "b": profiles.device(profiles.step(), idle_w=None)}
    found = everything(both := costs_of(profiles.profile(devices)))
    i = index(found, both, "ab", "a")
    assert not found.power_errors.variance()[i]
    assert found.time_errors.variance()[i]
