"""A run ends at its target, or after some evaluations without a better one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.protocol.events import Evaluated
from backends.training.stopping import NO_IMPROVEMENT, TARGET_REACHED, MetricTarget, StopRule


def course(*values: float, metric: str = "f1", higher: bool = True) -> list[Evaluated]:
    names = (metric,) if higher else ()
    return [Evaluated(step, "a", 1.0 / (step + 1), {metric: value}, 0.1, names) for step, value in enumerate(values)]


@pytest.mark.parametrize(
    ("higher", "value", "reached"), [(True, 0.9, True), (True, 0.89, False), (False, 0.9, True), (False, 0.91, False)]
)
def test_a_target_is_reached_in_the_direction_of_its_metric(higher, value, reached) -> None:
    rule = StopRule(MetricTarget("f1", 0.9))
    assert rule.reason(course(value, higher=higher)) == (TARGET_REACHED if reached else None)


def test_a_metric_that_is_not_there_ends_nothing_and_is_named_with_those_that_are() -> None:
    rule, found = StopRule(MetricTarget("auc", 0.5), patience=1), course(0.1, 0.1, 0.1)
    assert rule.reason(found) is None
    assert rule.unknown_metric(found) == "an evaluation gives no auc; it gives loss, f1"
    assert StopRule(MetricTarget("f1", 0.5)).unknown_metric(found) is None


def test_evaluations_of_an_earlier_run_without_the_metric_do_not_count() -> None:
    earlier = course(0.5)[0]._replace(metrics={})
    rule = StopRule(MetricTarget("f1", 0.9), patience=1)
    assert rule.reason([earlier, *course(0.6)]) is None
    assert rule.reason([earlier, *course(0.6, 0.6)]) == NO_IMPROVEMENT


@pytest.mark.parametrize(
    ("values", "ends"),
    [((1, 2, 3, 4), False), ((3, 2, 1), True), ((3, 2), False), ((1, 3, 3, 3), True), ((3, 2, 4), False)],
)
def test_patience_ends_a_run_that_no_longer_improves(values, ends) -> None:
    rule = StopRule(MetricTarget("f1", 99.0), patience=2)
    assert rule.reason(course(*map(float, values))) == (NO_IMPROVEMENT if ends else None)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=20), st.integers(1, 5), st.booleans())
def test_patience_counts_the_evaluations_since_the_best(values, patience, higher) -> None:
    best = max(values) if higher else min(values)
    since = len(values) - 1 - values.index(best)
    ends = StopRule(MetricTarget("f1", 99.0 if higher else -99.0), patience).reason(course(*values, higher=higher))
    assert (ends == NO_IMPROVEMENT) == (since >= patience)
