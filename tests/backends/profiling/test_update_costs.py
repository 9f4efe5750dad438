"""Updates are timed by optimizer, on a device alone and at a server."""

import numpy as np
import pytest

from backends.profiling import update_costs
from tests.backends.fakes import Softmax, images


def test_the_service_of_a_larger_model_takes_longer() -> None:
    small, large = (np.median(update_costs.service_s(count).values) for count in (10_000, 4_000_000))
    assert large > small > 0


@pytest.mark.parametrize("kind", ["adam", "lars"])
def test_other_optimizers_are_timed_by_name_for_both_places(kind: str) -> None:
    replica = Softmax()
    replica.gradient(images(8))
    cost = update_costs.of_others(replica, 1.0)[kind]
    for samples in cost:
        assert len(samples.values) >= 2 and len(samples.warmup) == 1 and min(samples.values) > 0
    assert np.isfinite(replica.weights).all()


def test_an_emulated_device_updates_as_slowly_as_it_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    slowed: list[float] = []
    monkeypatch.setattr(update_costs, "stretch", lambda seconds, slowdown: slowed.append(slowdown))
    replica = Softmax()
    replica.gradient(images(8))
    update_costs.update_s(replica, "adam", 4.0)
    assert set(slowed) == {4.0}
