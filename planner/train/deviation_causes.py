"""The causes of a measured time outside of its predicted interval, by the run's own figures."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from backends.protocol.events import Evaluated
from planner.plan.file import Plan
from planner.train.worker_result import WorkerResult
from planner.units import seconds

#: A cause with less of an effect than this share of the deviation does not explain it.
LEAST_SHARE = 0.25


class Cause(NamedTuple):
    """What may have made a run longer or shorter.

    effect: on the time of the run, as a share of the predicted time; negative if it was shorter.
    """

    effect: float
    text: str


class StepTime(NamedTuple):
    """Seconds of a part of a worker's step, as predicted and as measured.

    weight: how a second more changes the time of the run, as a share.
    """

    name: str
    predicted_s: float
    measured_s: float
    weight: float

    @property
    def effect(self) -> float:
        """On the time of the run, as a share."""
        return self.weight * (self.measured_s - self.predicted_s)


def deviation_notes(
    plan: Plan,
    time_s: float,
    parts: Mapping[str, WorkerResult],
    evaluations: Sequence[Evaluated] = (),
    evaluation_s: float = 0.0,
) -> list[str]:
    """A note where the measured time lies outside of the prediction's 95 % interval; else none.

    plan: for as many steps as the run has made.
    time_s: the measured time, without ``evaluation_s``.
    evaluations: those before the last step.
    """
    interval = time_interval(plan)
    if interval is None or interval[0] <= time_s <= interval[1]:
        return []
    longer = time_s > interval[1]
    side = "longer" if longer else "shorter"
    not_counted_s = math.fsum(each.seconds for each in evaluations) - evaluation_s
    cause = _likeliest(plan, time_s / plan.prediction.time_s - 1.0, parts, not_counted_s)
    why = "the run's own figures do not tell why" if cause is None else f"the likeliest cause: {cause}"
    bounds = " to ".join(seconds(bound) for bound in interval)
    return [f"the run took {seconds(time_s)}, {side} than the predicted {bounds} (95 % interval); {why}"]


def time_interval(plan: Plan) -> tuple[float, float] | None:
    """The 95 % interval of the predicted time; None where it is unknown."""
    if not plan.time_uncertainty:
        return None
    factor = 1.0 + plan.time_uncertainty
    return plan.prediction.time_s / factor, plan.prediction.time_s * factor


def _likeliest(plan: Plan, deviation: float, parts: Mapping[str, WorkerResult], not_counted_s: float) -> str | None:
    """The likeliest cause of a deviation of the time, as a share; None where no figure explains it.

    Lost members come first: all other figures change with them.
    not_counted_s: seconds of evaluations that are still in the measured time.
    """
    if deviation > 0 and (lost := _lost(plan, parts)):
        return lost
    if plan.run.strategy.batching != "fixed" and len(plan.workers) > 1:
        batching = plan.run.strategy.batching
        return f"batch sizes change over the run ({batching} batching) and are predicted as a mean only"
    causes = [
        *_step_causes(plan, parts, deviation),
        Cause(not_counted_s / plan.prediction.time_s, f"evaluations held the run up for {seconds(not_counted_s)}"),
    ]
    sign = math.copysign(1.0, deviation)
    largest = max(sign * cause.effect for cause in causes)
    if largest < LEAST_SHARE * abs(deviation):
        return None
    # Waiting for a slow worker is exchange to the others: of similar effects, the earlier counts.
    return next(cause.text for cause in causes if sign * cause.effect >= largest / 2)


def _lost(plan: Plan, parts: Mapping[str, WorkerResult]) -> str:
    """Members that were started again, or never made one of the steps planned for them."""
    lost = [
        f"{worker.name} (made {parts[worker.name].steps:,} of {worker.steps:,.0f} steps)"
        for worker in plan.workers
        if parts[worker.name].starts > 1 or (parts[worker.name].steps == 0 and worker.steps >= 1)
    ]
    return f"members were lost during the run: {', '.join(lost)}" if lost else ""


def _step_causes(plan: Plan, parts: Mapping[str, WorkerResult], deviation: float) -> list[Cause]:
    """Computing, exchange and waits for samples, against the times predicted for a step."""
    waits = plan.run.strategy.sync.waits_for(len(plan.workers)) > 1
    all_steps = math.fsum(worker.steps for worker in plan.workers)
    computing, exchange, waiting = [], [], []
    for worker in plan.workers:
        part = parts[worker.name]
        if not part.steps or worker.computing_s is None:
            continue
        weight = worker.steps / all_steps / worker.cycle_s
        waiting_s = 0.0 if worker.stream is None else worker.stream.waiting_share * worker.cycle_s
        exchange_s = max(0.0, worker.cycle_s - worker.computing_s - waiting_s)
        # Where workers wait for one another, a slow one delays them all.
        own_weight = 1.0 / worker.cycle_s if waits else weight
        computing.append(StepTime(worker.name, worker.computing_s, part.busy_s / part.steps, own_weight))
        exchange.append(StepTime(worker.name, exchange_s, part.exchange_s / part.steps, weight))
        if part.stream is not None:
            waited_s = part.stream["waited_s"] / part.steps
            waiting.append(StepTime(worker.name, waiting_s, waited_s, own_weight))
    later = "later" if deviation > 0 else "sooner"
    slower, longer = ("slower", "longer") if deviation > 0 else ("faster", "less time")
    return [
        *_cause(computing, deviation, f"computing was {slower} than profiled"),
        *_cause(waiting, deviation, f"samples arrived {later} than predicted"),
        *_cause(exchange, deviation, f"the exchange took {longer} than predicted"),
    ]


def _cause(times: Sequence[StepTime], deviation: float, text: str) -> list[Cause]:
    """The workers whose times differ most in the direction of the deviation, and their effect."""
    ranked = [each for each in times if each.effect * deviation > 0]
    if not ranked:
        return []
    largest = max(abs(each.effect) for each in ranked)
    named = "; ".join(
        f"{each.name}: {seconds(each.measured_s)} a step, predicted {seconds(each.predicted_s)}"
        for each in ranked
        if abs(each.effect) >= largest / 2
    )
    return [Cause(math.fsum(each.effect for each in ranked), f"{text} ({named})")]
