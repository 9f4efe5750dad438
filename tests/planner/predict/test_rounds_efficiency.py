"""Images that rounds take, by workers and local steps."""

import numpy as np
import pytest

from planner.predict.sample_efficiency import RoundsEfficiency, Source

SOURCE = Source("net", "images", 1000, 16, 0.9, (), (4,), "2026-11-25")


def factor(steps: list[float], power: float, decline: float = 0.0) -> float:
    known = RoundsEfficiency("diloco", power, decline, 0.1, (2, 4), (10, 100), 5, 0, SOURCE)
    return float(known.images_factor(np.array([steps]), np.array([steps]) > 0)[0])


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
