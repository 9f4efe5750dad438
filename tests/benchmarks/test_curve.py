"""Accuracy over seconds of training."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.protocol.events import Evaluated
from backends.protocol.json_messages import encode
from benchmarks.racing.curve import points, reached_s
from benchmarks.racing.records import Point
from planner.train.events import Started


def _evaluated(t_s: float, accuracy: float, seconds: float = 0.5, worker: str = "a") -> dict[str, object]:
    scores = {"loss": 1.0, "metrics": {"accuracy": accuracy}, "seconds": seconds, "step": 1, "worker": worker}
    return {"t_s": t_s, "from": "server", "type": "evaluated", **scores}


def test_lines_are_read_as_a_run_writes_them() -> None:
    scores = Evaluated(7, "a", 1.0, {"accuracy": 0.5}, 0.25)
    lines = [{"t_s": 1.0, **encode(Started())}, {"t_s": 3.0, **encode(scores)}]
    assert points(json.loads(json.dumps(lines)), {"a": 1.0}) == [Point(1.75, 7, 0.5, "a")]


def _curve(*pairs: tuple[float, float]) -> list[Point]:
    return [Point(time_s, 1, accuracy, "a") for time_s, accuracy in pairs]


def test_others_go_on_while_one_of_four_evaluates() -> None:
    events = [{"t_s": 0.0, "type": "started"}, _evaluated(2.0, 0.4, 1.0), _evaluated(4.0, 0.4, 1.0)]
    assert [point.time_s for point in points(events, {"a": 0.25})] == [1.0, 2.75]


def test_the_target_is_reached_between_the_last_evaluation_below_and_the_first_not_below() -> None:
    assert reached_s(_curve((2.0, 0.4), (4.0, 0.6), (6.0, 0.8)), 0.7) == pytest.approx(5.0)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20), st.floats(0.01, 1.0))
def test_the_target_is_never_reached_after_the_first_evaluation_that_shows_it(
    accuracies: list[float], target: float
) -> None:
    curve = _curve(*((float(at), accuracy) for at, accuracy in enumerate(accuracies, 1)))
    shows = next((point.time_s for point in curve if point.accuracy >= target), None)
    found = reached_s(curve, target)
    assert (found is None) == (shows is None)
    if found is not None and shows is not None:
        assert shows - 1.0 <= found <= shows
