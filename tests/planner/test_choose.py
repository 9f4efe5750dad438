"""The best of the strategies whose steps are worth the same."""

import pytest

from backends.strategies import gates, presets
from planner.choose import EQUAL, best_of
from planner.errors import PlanError
from tests.planner import profiles

TIME = {"time": 1.0}


@pytest.mark.parametrize("text", EQUAL)
def test_all_of_them_wait_for_all_and_leave_nothing_out(text: str) -> None:
    found = presets.strategy(text)
    assert gates.parse(found.gate).waits_for(8) == 8
    assert (found.sender, found.merge, found.batching, found.knowledge) == ("everything", "mean", "fixed", "none")


def test_the_quickest_is_taken_and_said() -> None:
    devices = {name: profiles.device(profiles.step(0.5)) for name in "abcd"}
    found = best_of(profiles.profile(devices), TIME, "auto", steps=1000)
    each = {text: best_of(profiles.profile(devices), TIME, text, steps=1000) for text in EQUAL}
    times = {text: ranked.row(1).prediction.time_s for text, ranked in each.items()}
    assert found.costs.strategy == min(times, key=times.__getitem__) == "allreduce"
    assert found.notes[-1].startswith("--strategy auto: allreduce, the best of parameter-server:gate=synchronous, ")


def test_a_strategy_that_is_named_is_taken() -> None:
    devices = {name: profiles.device() for name in "ab"}
    assert best_of(profiles.profile(devices), TIME, "gaia").costs.strategy == "gaia"


def test_where_nothing_can_be_ranked_the_reason_is_told() -> None:
    with pytest.raises(PlanError, match="no such device"):
        best_of(profiles.profile({"a": profiles.device()}), TIME, "auto", include=("b",))
