"""A recommendation on screen: the clusters, ties, and the workers of the planned one."""

from pathlib import Path
from typing import Any

import pytest

from planner.plan.recommend import recommend
from planner.plan.texts import parse_strategy
from planner.views import ranking
from tests.planner import profiles
from tests.planner.requests import asked
from tests.planner.screens import WIDTHS, row, shown

WIDE = pytest.mark.parametrize("width", WIDTHS)
PATH = Path("profile.json")
EDP = {"edp": 1.0}


@WIDE
@pytest.mark.parametrize("top", [0, 1, 5, 50])
def test_a_ranking_begins_with_what_to_do_and_ends_with_where_the_plan_is(width: int, top: int) -> None:
    text = shown(ranking.render(recommend(profiles.three(), asked(EDP)), top, Path("plan.json")), width)
    assert text.startswith("Train on ")
    assert f"best {min(top or 12, 12)} of 12 by EDP" in " ".join(text.split())
    assert text.endswith("wrote plan.json\n")


def in_full(found: Any, place: int = 1) -> str:
    return shown(ranking.render(found, 0, PATH, place, verbose=True))


def places(found: Any, top: int = 12) -> list[str]:
    text = shown(ranking.render(found, top, PATH)).split("\n\n")[1]
    return [line.split()[0] for line in text.splitlines()[3:]]


def test_nothing_is_marked_as_a_tie_where_nothing_ties_with_the_best() -> None:
    apart = (*profiles.links("a"), *profiles.links("b"), *profiles.links("c"))
    found = recommend(profiles.profile(profiles.three().devices, links=apart), asked(EDP))
    assert [row.standing.tie for row in found.rows(3)] == [True, False, False]
    assert places(found) == ["1", "2", "3"]
    assert "= not told apart" not in shown(ranking.render(found, 12, PATH))


def test_a_tie_is_marked_on_the_best_and_on_what_ties_with_it() -> None:
    twins = profiles.profile({name: profiles.device(profiles.step(0.4, spread=0.3)) for name in "ab"})
    found = recommend(twins, asked({"time": 1.0}))
    assert found.row(2).standing.tie
    assert places(found)[:2] == ["1=", "2="]
    assert "= not told apart from the best" in shown(ranking.render(found, 12, PATH))


@WIDE
def test_a_global_batch_is_shown_with_the_part_of_each_worker(width: int) -> None:
    request = asked({"time": 1.0}, global_batch=96, strategy=parse_strategy("allreduce"), include=["a", "b"])
    found = recommend(profiles.three(), request)
    text = shown(ranking.render(found, 0, PATH, verbose=True), width)
    assert "net, allreduce:aggregation=samples, global batch 96" in " ".join(text.split())
    breakdown = text.partition("workers of the best cluster")[2]
    batches = found.row(1).batches
    assert sum(batches.values()) == 96
    assert [row(breakdown, name).split()[1] for name in batches] == [str(batch) for batch in batches.values()]


def test_a_spread_that_is_not_known_is_a_dash_and_not_zero() -> None:
    text = in_full(recommend(profiles.three(spread=0.1), asked({"power": 1.0})))
    assert "± energy" in text
    assert "0.0 %" not in text


@WIDE
def test_a_ranking_by_time_needs_no_watts(width: int) -> None:
    unknown = profiles.profile({name: profiles.device(idle_w=None) for name in "ab"})
    assert " - " in shown(ranking.render(recommend(unknown, asked({"time": 1.0})), 0, PATH), width)


def test_the_breakdown_and_the_last_line_are_of_the_place_that_is_planned() -> None:
    found = recommend(profiles.three(), asked(EDP))
    members = [worker.name for worker in found.workers(12)]
    assert members != [worker.name for worker in found.workers(1)]
    text = in_full(found, 12)
    breakdown = text.partition("workers of number 12")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in breakdown.splitlines()[3:]] == members
    assert text.rstrip().endswith("wrote number 12 to profile.json")
    assert "workers of the best cluster" not in text
