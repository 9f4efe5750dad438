"""Accuracy over seconds of training, from a run's events. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .records import Point


def points(events: Iterable[dict[str, Any]], shares: Mapping[str, float]) -> list[Point]:
    """The evaluations of a run in order, each of the weights at its beginning.

    Seconds count from the word to begin, less what evaluations before cost the cluster, as in
    result.json: ``shares`` of their seconds, by who evaluated; 1 where all wait for
    one another.
    """
    found: list[Point] = []
    began_s = cost_s = 0.0
    for event in events:
        if event["type"] == "started":
            began_s = event["t_s"]
        elif event["type"] == "evaluated":
            time_s = event["t_s"] - began_s - cost_s - event["seconds"]
            found.append(Point(max(0.0, time_s), event["step"], event["metrics"]["accuracy"], event["worker"]))
            cost_s += event["seconds"] * shares[event["worker"]]
    return found


def reached_s(curve: Sequence[Point], target: float) -> float | None:
    """When the target was reached, interpolated between the evaluations around it.

    That first one's own time where there is none before it; None where no evaluation reached the
    target.
    """
    before: Point | None = None
    for point in curve:
        if point.accuracy >= target:
            if before is None:
                return point.time_s
            part = (target - before.accuracy) / (point.accuracy - before.accuracy)
            return before.time_s + part * (point.time_s - before.time_s)
        before = point
    return None
