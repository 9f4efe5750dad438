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


def test_evaluations_without_the_metric_end_nothing() -> None:
    assert StopRule(MetricTarget("auc", 0.5), patience=1).reason(course(0.1, 0.1, 0.1)) is None


def test_a_direction_that_is_stated_counts_more_than_that_of_the_evaluations() -> None:
    rule = StopRule(MetricTarget("zork", 0.5, "lower"), patience=1)
    assert rule.reason(course(0.4, metric="zork", higher=True)) == TARGET_REACHED
    assert rule.reason(course(0.7, 0.8, metric="zork", higher=True)) == NO_IMPROVEMENT


@pytest.mark.parametrize(
    ("target", "stated", "direction"),
    [
        (MetricTarget("ppl", 25.0), {"ppl": ""}, "lower"),
        (MetricTarget("ppl", 25.0), {"ppl": "higher"}, "higher"),
        (MetricTarget("ppl", 25.0, "higher"), {"ppl": ""}, "higher"),
        (MetricTarget("zork", 25.0), {"zork": "lower"}, "lower"),
        (MetricTarget("zork", 25.0, "higher"), {"zork": ""}, "higher"),
        (MetricTarget("loss", 0.5), {"loss": "higher"}, "lower"),
    ],
)
def test_a_direction_is_that_of_the_job_or_the_operator_or_the_name(target, stated, direction) -> None:
    assert target.settled(stated) == target._replace(direction=direction)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (MetricTarget("f1", 0.9), "an evaluation gives no f1; it gives loss, mae, zork"),
        (MetricTarget("zork", 3.0), "whether a higher or a lower zork is better; write zork=3:lower, or :higher"),
        (MetricTarget("mae", 3.0, "higher"), "the job says that mae is better when lower"),
        (MetricTarget("loss", 3.0, "higher"), "loss is better when lower"),
    ],
)
def test_a_target_that_cannot_be_judged_says_what_can(target, message) -> None:
    with pytest.raises(ValueError, match=message):
        target.settled({"mae": "lower", "zork": ""})


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (StopRule(MetricTarget("ppl", 25.0, "lower")), "until ppl ≤ 25"),
        (
            StopRule(MetricTarget("f1", 0.9, "higher"), 3),
            "until f1 ≥ 0.9, or until no evaluation of 3 in a row is better",
        ),
        (StopRule(), ""),
    ],
)
def test_a_rule_says_until_when_a_run_goes_on(rule, text) -> None:
    assert rule.text == text


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
