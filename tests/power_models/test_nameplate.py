import numpy as np
import pytest

from power_models.base import Target, Unsuitable
from power_models.nameplate import Nameplate, watts
from power_models.table import Table


def test_watts_grow_from_idle_to_busy_with_the_busy_share() -> None:
    assert watts(np.array(10.0), np.array(50.0), np.array([0.0, 0.25, 1.0])) == pytest.approx([10.0, 20.0, 50.0])


@pytest.mark.parametrize("fraction", [-0.1, 1.1])
def test_a_share_outside_zero_and_one_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match="busy fraction must lie in"):
        watts(np.array(1.0), np.array(2.0), np.array(fraction))


def test_it_is_fitted_by_what_a_device_draws_when_more_or_less_busy() -> None:
    table = Table.of({"u_cpu": [0.0, 0.5, 0.2], "u_gpu": [0.1, 0.2, 1.0], "u_mem": [1.0, 1.0, 1.0], "size": [1, 2, 3]})
    model = Nameplate.fit(table, Target("power", np.array([14.0, 30.0, 50.0])))
    assert (model.idle_w, model.max_w) == (pytest.approx(10.0), pytest.approx(50.0))
    assert set(model.loads) == {"u_cpu", "u_gpu"}, "memory in use draws nothing"


def test_watts_do_not_fall_with_the_load() -> None:
    table = Table.of({"u_cpu": [0.0, 0.5, 1.0]})
    model = Nameplate.fit(table, Target("power", np.array([30.0, 20.0, 20.0])))
    assert 20.0 < model.idle_w == model.max_w < 30.0


def test_two_watts_that_somebody_wrote_down_are_a_model() -> None:
    model = Nameplate(4.0, 14.0, {"u_cpu": 1.0, "gpu_util": 100.0})
    table = Table.of({"u_cpu": [0.1, 0.2, "", 1.5], "gpu_util": [50, "", "", 0]})
    assert model.predict(table).values.tolist() == pytest.approx([9.0, 6.0, 9.0, 14.0]), "unknown: half busy"


def test_it_needs_a_utilisation_and_watts() -> None:
    table = Table.of({"u_cpu": [0.1, 0.9], "u_gpu": [0.5, 0.5]})
    with pytest.raises(Unsuitable, match="no column of utilisation"):
        Nameplate.fit(table.only(["u_gpu"]), Target("power", np.array([1.0, 2.0])))
    with pytest.raises(Unsuitable, match="time is no power"):
        Nameplate.fit(table, Target("time", np.array([1.0, 2.0])))
