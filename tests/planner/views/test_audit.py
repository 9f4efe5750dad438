"""The table of an audit, what is said below it, and its JSON."""

import json

import pytest

from planner.audit.outcome import Outcome, verdict
from planner.plan.recommend import recommend
from planner.plan.recommendation import Recommendation
from planner.views import audit as view
from tests.planner import profiles
from tests.planner.requests import asked
from tests.planner.screens import shown

FIRST = Outcome(1, "a", ("a", "b"), "server, asynchronous", ("b",), 0.2, 30.0, 0.25, 33.0)
SECOND = Outcome(2, "a", ("a",), "alone", (), 0.4, 20.0, 0.2)
FAILED = Outcome(3, "b", ("b",), "alone", ("b",), 0.4, 20.0, failure="b cannot be reached")


@pytest.fixture
def ranked() -> Recommendation:
    return recommend(profiles.three(), asked({"time": 1.0}))


def test_measured_stands_beside_predicted_and_the_regret_below(ranked: Recommendation) -> None:
    text = shown(view.render(ranked, [FIRST, SECOND, FAILED], verdict([FIRST, SECOND], ranked.weights)))
    row = next(line for line in text.splitlines() if line.startswith("1 "))
    assert row.split()[1:4] == ["a", "a", "b*"] and "200 ms" in row and "250 ms" in row and "+25.0%" in row
    assert "Number 2 was the best of those measured; the first one is 25.0 % worse." in text
    assert "number 3 was not measured: b cannot be reached" in text
    assert "* emulated" in text and view.WATTS_NOTE in text


def test_json_says_the_same(ranked: Recommendation) -> None:
    told = json.loads(json.dumps(view.to_json(ranked, [FIRST, SECOND], verdict([FIRST, SECOND], ranked.weights))))
    assert (told["hit"], told["regret"]) == (False, pytest.approx(0.25))
    assert told["clusters"][0]["error"] == pytest.approx(0.25)
    assert view.to_json(ranked, [SECOND], None)["hit"] is None
