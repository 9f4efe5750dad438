"""A device that waits long for its data says so, and names how long."""

import pytest

from planner.profile import data_wait
from tests.planner import profiles


@pytest.mark.parametrize(("data_s", "share"), [(0.0, 0.0), (0.02, 0.2), (0.5, 1.0)])
def test_the_share_is_that_of_the_gradient(data_s: float, share: float) -> None:
    assert data_wait.share(profiles.step(0.1, data_s=data_s)) == pytest.approx(share)


def test_only_a_wait_that_matters_is_told() -> None:
    assert data_wait.notes(profiles.step(0.1, data_s=0.009)) == []
    assert data_wait.notes(profiles.step(0.1, data_s=0.04))[0].startswith(
        "net waits 40.0 ms of each step for its data (40 % of computing a gradient): reading them is the bottleneck"
    )
