"""Updates are timed by optimizer, on a device alone and at a server."""

import numpy as np
import pytest

from backends.profiling import update_costs
from tests.backends.fakes import Softmax, images


@pytest.mark.parametrize("kind", ["adam", "lars"])
def test_other_optimizers_are_timed_by_name_for_both_places(kind: str) -> None:
    replica = Softmax()
    replica.gradient(images(8))
    cost = update_costs.of_others(replica)[kind]
    for samples in cost:
        assert len(samples.values) >= 2 and len(samples.warmup) == 1 and min(samples.values) > 0
    assert np.isfinite(replica.weights).all()


def test_a_server_without_the_memory_for_all_is_timed_with_fewer_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_costs, "timed", lambda update: (update(), 0.5))
    found = update_costs.service_s(1000, most=100)
    assert set(found.values) == {5.0}  # ten times as long


class OfJob(Softmax):
    """A replica of a job whose own optimizer adds up what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[tuple[bool, np.ndarray]] = []

    def own_step(self, weights: np.ndarray, gradients: np.ndarray) -> None:
        self.given.append((weights is self.weights, gradients.copy()))


def test_a_jobs_own_optimizer_is_timed_as_a_peer_uses_it() -> None:
    replica = OfJob()
    replica.gradient(images(8))
    taken = update_costs.own_service_s(replica)
    assert len(replica.given) == len(taken.warmup) + len(taken.values) >= 3
    assert all(of_replica and np.array_equal(each, replica.gradients) for of_replica, each in replica.given)


def test_clipping_is_timed_as_one_norm_and_one_scaling_of_a_gradient_that_stays() -> None:
    replica = Softmax()
    replica.gradient(images(8))
    before = replica.gradients.copy()
    taken = update_costs.clip_s(replica)
    assert len(taken.values) >= 2 and min(taken.values) > 0
    assert np.array_equal(replica.gradients, before)
