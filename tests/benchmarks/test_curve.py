"""Accuracy over seconds of training."""

import json

from hypothesis import given
from hypothesis import strategies as st

from backends.protocol.events import Evaluated
from backends.protocol.json_messages import encode
from benchmarks.racing.curve import points, reached_s
from benchmarks.racing.records import Point
from planner.train.events import Started


def test_lines_are_read_as_a_run_writes_them() -> None:
    scores = Evaluated(7, "a", 1.0, {"accuracy": 0.5}, 0.25)
    lines = [{"t_s": 1.0, **encode(Started())}, {"t_s": 3.0, **encode(scores)}]
    assert points(json.loads(json.dumps(lines)), {"a": 1.0}) == [Point(1.75, 7, 0.5, "a")]


def _curve(*pairs: tuple[float, float]) -> list[Point]:
    return [Point(time_s, 1, accuracy, "a") for time_s, accuracy in pairs]


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
