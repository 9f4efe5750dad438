"""A deviation from the predicted time is explained by what differs most in the run's own figures.

In the plan, a and b make 50 steps each in 100 s, of which 1.5 s a step are computing.
"""

import pytest

from backends.protocol.events import Evaluated
from planner.plan.file import Plan
from planner.provenance import Provenance
from planner.train.deviation_causes import deviation_notes, time_interval
from planner.train.worker_result import WorkerResult
from tests.planner.plans import plan, planned, streamed

AS_PREDICTED = WorkerResult(50, 75.0, 25.0, 0.0, None, Provenance("sensor"))


def two(strategy: str = "parameter-server", computing_s: float | None = 1.5) -> Plan:
    """Its 95 % interval is 90.9 s to 110 s."""
    workers = (planned(name)._replace(computing_s=computing_s) for name in "ab")
    return plan(*workers, strategy=strategy)._replace(time_uncertainty=0.1)


def cause(time_s: float, a: WorkerResult = AS_PREDICTED, b: WorkerResult = AS_PREDICTED, of: Plan | None = None) -> str:
    (note,) = deviation_notes(of or two(), time_s, {"a": a, "b": b})
    return note.partition("; ")[2]


@pytest.mark.parametrize(("time_s", "side"), [(115.0, "115 s, longer"), (80.0, "80.0 s, shorter")])
def test_a_note_has_the_time_and_the_interval(time_s: float, side: str) -> None:
    assert deviation_notes(two(), time_s, {"a": AS_PREDICTED, "b": AS_PREDICTED}) == [
        f"the run took {side} than the predicted 90.9 s to 110 s (95 % interval); the run's own figures do not tell why"
    ]


# -- causes ----------------------------------------------------------------------------------------


def test_a_worker_that_computed_slower_is_named() -> None:
    slow = AS_PREDICTED._replace(steps=40, busy_s=120.0, exchange_s=20.0)
    assert cause(125.0, a=slow) == (
        "the likeliest cause: computing was slower than profiled (a: 3.00 s a step, predicted 1.50 s)"
    )


def test_where_workers_wait_for_one_another_the_slow_one_is_the_cause_of_the_waiting() -> None:
    slow, waiting = AS_PREDICTED._replace(busy_s=125.0), AS_PREDICTED._replace(exchange_s=75.0)
    synchronous = two("parameter-server:sync=synchronous")
    assert "computing was slower than profiled (a: 2.50 s" in cause(150.0, slow, waiting, synchronous)


def streaming(waited_s: float, **changes: float) -> WorkerResult:
    return AS_PREDICTED._replace(exchange_s=0.0, stream={"waited_s": waited_s}, **changes)


def test_samples_that_arrived_later_than_predicted_are_named() -> None:
    """In the plan they are waited for a quarter of the 2 s of a step, and nothing is exchanged."""
    waiting = two()
    waiting = waiting._replace(workers=tuple(each._replace(stream=streamed()) for each in waiting.workers))
    assert cause(125.0, streaming(25.0), streaming(75.0), waiting) == (
        "the likeliest cause: samples arrived later than predicted (b: 1.50 s a step, predicted 500 ms)"
    )
    assert cause(80.0, streaming(25.0), streaming(0.0), waiting) == (
        "the likeliest cause: samples arrived sooner than predicted (b: 0 µs a step, predicted 500 ms)"
    )


def test_a_cause_in_the_other_direction_explains_nothing() -> None:
    assert cause(80.0, a=AS_PREDICTED._replace(busy_s=150.0)) == "the run's own figures do not tell why"


@pytest.mark.parametrize(
    ("lost", "made"), [(AS_PREDICTED._replace(starts=3, steps=20), "20"), (AS_PREDICTED._replace(steps=0), "0")]
)
def test_a_lost_member_comes_before_every_other_cause(lost: WorkerResult, made: str) -> None:
    assert cause(150.0, AS_PREDICTED._replace(steps=80, exchange_s=200.0), lost) == (
        f"the likeliest cause: members were lost during the run: b (made {made} of 50 steps)"
    )


def test_batches_that_change_come_before_the_times_of_steps() -> None:
    slow = AS_PREDICTED._replace(busy_s=150.0)
    assert "batch sizes change over the run (dynamic batching)" in cause(150.0, slow, slow, two("dlion"))


def test_evaluations_are_named_where_nothing_else_differs() -> None:
    evaluations = [Evaluated(step, "a", 1.0, {"accuracy": 0.5}, 20.0) for step in (30, 60)]
    parts = {"a": AS_PREDICTED, "b": AS_PREDICTED}
    (note,) = deviation_notes(two(), 115.0, parts, evaluations, evaluation_s=20.0)
    assert note.endswith("the likeliest cause: evaluations held the run up for 20.0 s")


# -- the interval ----------------------------------------------------------------------------------


def test_a_resumed_run_has_the_interval_of_the_steps_that_it_made() -> None:
    assert time_interval(two().for_steps(50)) == pytest.approx((50 / 1.1, 50 * 1.1))
