import numpy as np
import pytest

from power_models.nameplate import watts


def test_watts_grow_from_idle_to_busy_with_the_busy_share() -> None:
    assert watts(np.array(10.0), np.array(50.0), np.array([0.0, 0.25, 1.0])) == pytest.approx(
        [10.0, 20.0, 50.0]
    )


def test_what_is_unknown_stays_unknown() -> None:
    assert np.isnan(watts(np.array(np.nan), np.array(50.0), np.array(0.5)))


@pytest.mark.parametrize("fraction", [-0.1, 1.1])
def test_a_share_outside_zero_and_one_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match="busy fraction must lie in"):
        watts(np.array(1.0), np.array(2.0), np.array(fraction))
