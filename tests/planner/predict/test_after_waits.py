"""After a wait caches are cold, and what a quota granted meanwhile is there.

Containers of a quarter of a core, granted every 5 ms, compute at full speed then.
"""

from typing import Any

import numpy as np
import pytest

from backends.strategies.strategy import Strategy
from planner.predict import step_cycle
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs, costs_of
from planner.profile.file import Profile
from profilers.records.device import SpunCores
from tests.planner import profiles

CORES, PERIOD_S = 0.25, 0.005
#: Of gradients that are longer than a period.
SAVED_S = (1 - CORES) * PERIOD_S + PERIOD_S / 2
SYNCHRONOUS = "parameter-server:sync=synchronous"
WAITING = (SYNCHRONOUS, "allreduce", "baseline", "sgp", "crossover", "crossover-hierarchical")


def fleet(
    gradient_s: float = 0.1, cores: float = CORES, period_s: float | None = PERIOD_S, rate: float = 1e6,
    accelerator: str = "cpu", wait_cpu_s: float = 0.0, message_cpu_s: float = 0.0,
) -> Profile:  # fmt: skip
    step = profiles.step(gradient_s, accelerator=accelerator, cpu_s_per_step=cores * gradient_s)
    step = step._replace(wait_cpu_s=wait_cpu_s, message_cpu_s=message_cpu_s)
    spun = SpunCores(cores, cores, 1, period_s)
    devices = {name: profiles.device(step, cores=cores)._replace(spun=spun) for name in "abc"}
    return profiles.profile(devices, dict.fromkeys("abc", rate))


def cycles(profile: Profile, strategy: str, mask: int = 0b111) -> np.ndarray:
    costs: Costs = costs_of(profile, strategy=Strategy.from_text(strategy))
    return step_cycle.solve(costs, Candidates(np.array([mask]), np.array([0]))).cycle_s[0]


@pytest.mark.parametrize(
    ("changes", "expected_s"),
    [
        ({}, SAVED_S),
        ({"gradient_s": 0.002}, 0.75 * 0.002),  # which leaves its processor time
        ({"gradient_s": 0.002, "wait_cpu_s": 0.0005}, 0.75 * (0.002 + 0.002)),  # and that of cold caches
        ({"gradient_s": 1.0, "period_s": 0.1}, 0.75 * 0.1 + 0.005 / 0.25),
        ({"cores": 1.0}, 0.0),
        ({"cores": 2.0}, 0.0),
        ({"period_s": None}, 0.0),
        ({"accelerator": "cuda"}, 0.0),
    ],
)
def test_a_gradient_is_shorter_by_a_part_of_the_period(changes: dict[str, Any], expected_s: float) -> None:
    found = costs_of(fleet(**changes)).devices.unused_quota_s
    assert found == pytest.approx([expected_s] * 3)


@pytest.mark.parametrize("strategy", WAITING)
def test_members_that_wait_for_slow_links_make_use_of_it(strategy: str) -> None:
    before, after = cycles(fleet(period_s=None), strategy), cycles(fleet(), strategy)
    assert before - after == pytest.approx([SAVED_S] * 3)


@pytest.mark.parametrize("strategy", WAITING)
def test_members_that_wait_find_cold_caches(strategy: str) -> None:
    warm, cold = (cycles(fleet(period_s=None, wait_cpu_s=more_s), strategy) for more_s in (0.0, 0.002))
    assert cold - warm == pytest.approx([0.002 / CORES] * 3)


@pytest.mark.parametrize(
    ("cores", "accelerator", "expected_s"), [(0.5, "cpu", 4e-3), (4.0, "cpu", 2e-3), (1.0, "cuda", 0.0)]
)
def test_one_thread_finds_them_so(cores: float, accelerator: str, expected_s: float) -> None:
    cold = fleet(cores=cores, accelerator=accelerator, wait_cpu_s=0.002, message_cpu_s=0.001)
    devices = costs_of(cold).devices
    assert devices.wait_s == pytest.approx([expected_s] * 3)
    assert devices.message_s == pytest.approx([expected_s / 2] * 3)


@pytest.mark.parametrize("strategy", WAITING)
def test_no_processor_gets_more_than_its_quota(strategy: str) -> None:
    fast = fleet(rate=1e12)
    costs = costs_of(fast, strategy=Strategy.from_text(strategy))
    assert cycles(fast, strategy).min() >= costs.devices.gradient_s.min() - 1e-9


def test_around_an_asynchronous_server_those_on_other_devices_wait() -> None:
    before, after = (cycles(fleet(period_s=period_s), "parameter-server") for period_s in (None, PERIOD_S))
    assert after[0] == pytest.approx(before[0], rel=1e-3)
    saved_s = before[1:] - after[1:]  # less where they meet at the server's link
    assert (saved_s > SAVED_S / 4).all() and (saved_s <= SAVED_S).all()
    cold = cycles(fleet(period_s=None, wait_cpu_s=0.002), "parameter-server")
    assert cold[0] == pytest.approx(before[0], rel=1e-3)
    assert (cold[1:] > before[1:] + 0.002 / CORES / 4).all()


def test_that_beside_an_asynchronous_server_finds_the_caches_as_messages_leave_them() -> None:
    before, after = (cycles(fleet(period_s=None, message_cpu_s=more_s), "parameter-server") for more_s in (0.0, 0.002))
    assert after[0] >= before[0] + 0.002 / CORES
    assert after[1:] == pytest.approx(before[1:], rel=0.05)


def test_a_device_alone_and_members_that_wait_for_nobody_keep_their_steps() -> None:
    for strategy, mask in (("parameter-server", 0b001), ("ako", 0b111)):
        before, *after = (
            cycles(fleet(period_s=period_s, rate=1e9, wait_cpu_s=wait_cpu_s), strategy, mask)
            for period_s, wait_cpu_s in ((None, 0.0), (PERIOD_S, 0.0), (None, 0.002))
        )
        assert all(each == pytest.approx(before) for each in after)
