"""Images that rounds take, by workers and local steps."""

import numpy as np
import pytest

from planner.predict.sample_efficiency import NONE, RoundsEfficiency, Source, images_factor

SOURCE = Source("net", "images", 1000, 16, 0.9, (), (4,), "2026-11-25")

OTHER = SOURCE._replace(model="other")


def known(power: float, decline: float = 0.0) -> RoundsEfficiency:
    return RoundsEfficiency("diloco", power, decline, 0.1, (2, 4), (10, 100), 5, 0, SOURCE)


def factor(steps: list[float], power: float, decline: float = 0.0, batch: int = 16, usual: int = 16) -> float:
    rounds, each = np.array([steps]), np.array([float(batch)])
    return float(known(power, decline).images_factor(rounds, rounds > 0, each, usual)[0])


def test_workers_that_help_in_full_need_no_more_images_and_those_that_do_not_help_all_of_theirs() -> None:
    assert factor([50, 50, 50, 50], power=1.0) == pytest.approx(1.0)
    assert factor([50, 50, 50, 50], power=0.0) == pytest.approx(4.0)
    assert factor([50, 50, 50, 50], power=0.5) == pytest.approx(2.0)


def test_unequal_workers_count_as_fewer_equal_ones() -> None:
    assert factor([100, 50, 50], power=0.0) == pytest.approx(8 / 3)
    assert factor([50, 100, 50], power=0.3) == factor([100, 50, 50], power=0.3)


def test_longer_rounds_need_more_images() -> None:
    assert factor([100, 100], 0.8, 0.002) == pytest.approx(2 ** (0.2 + 0.002 * 100))


def test_a_device_alone_needs_its_own() -> None:
    assert factor([70, 0, 0], power=0.3, decline=0.001) == pytest.approx(1.0)


def test_with_larger_batches_workers_help_less() -> None:
    """16 images and 4 workers that need twice the images: a critical batch of 32."""
    equal = [50.0] * 4
    for batch in (4, 16, 64):
        more = factor(equal, power=0.5, batch=batch, usual=batch)
        assert more == pytest.approx(images_factor(4, batch, 32.0)) == pytest.approx((32 + 4 * batch) / (32 + batch))


def test_more_workers_than_were_measured_are_no_extrapolated_power() -> None:
    more = factor([50] * 8, power=0.5)
    assert more == pytest.approx(images_factor(8, 16, 32.0))
    assert more > 8**0.5


def test_synchronous_steps_need_no_more_images_than_rounds_of_one_step() -> None:
    found = NONE._replace(critical_batch=8.0, rounds=(known(power=0.5),))
    assert found.synchronous == (pytest.approx(32.0), SOURCE)
    assert found._replace(critical_batch=100.0, source=OTHER).synchronous == (100.0, OTHER)
    assert NONE._replace(critical_batch=8.0).synchronous == (8.0, None)
    assert NONE.synchronous == (None, None)


def test_where_larger_batches_needed_no_more_images_that_stays_so() -> None:
    found = NONE._replace(source=OTHER, rounds=(known(power=0.5),))
    assert found.synchronous == (None, OTHER)
