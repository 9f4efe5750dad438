"""A prediction for devices as fast as they were during the run, by their reference loops. Pure.

A machine's speed drifts between its profile and a run. What a prediction would have been at the
speed of the run tells how much of its error is not of that kind.
"""

from collections.abc import Mapping

from planner.plan.file import Plan, PlannedWorker
from planner.predict.predict import Prediction
from planner.profile.machine_speed import slowdown
from planner.train.worker_result import WorkerResult


def slowdowns(plan: Plan, parts: Mapping[str, WorkerResult]) -> dict[str, float]:
    """By worker, how many times as long its loop took as in the profile, where both are known."""
    found = {worker.name: slowdown(parts[worker.name].speed, worker.speed) for worker in plan.workers}
    return {name: factor for name, factor in found.items() if factor is not None}


def at_equal_speed(plan: Plan, factors: Mapping[str, float]) -> Prediction | None:
    """The prediction where workers compute so many times as long; None unless all are known.

    Exchanges stay as long, and samples arrive as they do. Where workers wait for one another, the
    slowest gradient counts.
    Watts stay as they are, for a loop does not tell them.
    """
    if any(worker.name not in factors or worker.computing_s is None for worker in plan.workers):
        return None
    computing_s = {worker.name: worker.computing_s or 0.0 for worker in plan.workers}
    later_s = {name: (factors[name] - 1.0) * own_s for name, own_s in computing_s.items()}
    if plan.run.strategy.sync.waits_for(len(plan.workers)) > 1 and not plan.run.strategy.local:
        longest_s = max(factors[name] * own_s for name, own_s in computing_s.items()) - max(computing_s.values())
        later_s = dict.fromkeys(later_s, longest_s)

    def slowed(worker: PlannedWorker) -> PlannedWorker:
        stream = worker.stream
        free_s, least_s = (worker.cycle_s, 0.0) if stream is None else (stream.free_s, stream.least_s)
        return worker._replace(cycle_s=max(free_s + later_s[worker.name], least_s, 1e-9))

    return plan._replace(workers=tuple(map(slowed, plan.workers))).for_steps(plan.run.steps).prediction
