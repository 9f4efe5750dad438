"""Contention: who shares a kernel with whom."""

import itertools

import numpy as np

from planner.predict.contention import of_steps
from profilers.records.steps import Contention
from tests.planner import profiles


def test_devices_timed_beside_one_another_share_a_kernel_in_whatever_order_they_come() -> None:
    beside = {"a": ("a", "b"), "b": ("b", "c"), "c": (), "d": ()}
    steps = {
        name: profiles.step(contention=Contention(names, 2.0, 0.0) if names else None) for name, names in beside.items()
    }
    for order in itertools.permutations(steps):
        kernel = dict(zip(order, of_steps({name: steps[name] for name in order}).kernel.tolist(), strict=True))
        assert kernel["a"] == kernel["b"] == kernel["c"] != kernel["d"]


def test_a_device_is_slowed_where_another_on_its_kernel_is_a_member() -> None:
    beside = Contention(("a", "b"), 2.0, 0.0)
    contention = of_steps({"a": profiles.step(contention=beside), "b": profiles.step(), "c": profiles.step()})
    found = contention.of(np.array([[True, True, False], [True, False, True]]))
    assert found.tolist() == [[2.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
