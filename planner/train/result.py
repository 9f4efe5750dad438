"""The result of a run puts what was measured beside what was predicted. Pure."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from backends.protocol.events import Evaluated, RunAccount
from backends.training.stopping import EARLY_ENDS, StopRule
from planner.plan.file import Plan, PlannedWorker
from planner.predict.batches import notes_scaled
from planner.predict.run import Prediction
from planner.profile.power_readings import uncertainty
from planner.provenance import Provenance
from planner.train.deviation_causes import deviation_notes
from planner.train.worker_result import WorkerResult
from profilers.records.json_values import json_value


def run_result(plan: Plan, account: RunAccount, parts: Mapping[str, WorkerResult]) -> dict[str, Any]:
    """The content of result.json: measured and predicted figures, and the workers.

    The training time is the wall time from the start until the last update, less what evaluations
    before it cost the cluster: the evaluating worker's seconds, times its share of the steps where
    nobody waits for it. ``wall_s`` and ``evaluation_s`` tell both, as measured and as predicted
    (null where an evaluation was not profiled). The power is that of the workers, plus
    ``besides_w`` as planned.
    A resumed run is compared with a prediction for the steps that it made itself.

    energy_uncertainty: half of the energy's 95 % interval, as a share; null where unknown.
    """
    made = sum(part.steps for part in parts.values())
    predicted_plan = plan if made in (0, plan.run.steps) else plan.for_steps(made)
    planned = {worker.name: worker for worker in predicted_plan.workers}
    before_the_end = [each for each in account.evaluations if each.step < plan.run.steps]
    held_up = plan.run.strategy.evaluation_stops_all(len(plan.workers))
    shares = {name: 1.0 if held_up else part.steps / max(1, made) for name, part in parts.items()}
    evaluation_s = math.fsum(each.seconds * shares.get(each.worker, 0.0) for each in before_the_end)
    evaluation_planned_s = _evaluation_s(before_the_end, planned, shares)
    time_s = account.elapsed_s - evaluation_s
    measured = _figures(Prediction(time_s, _total_w(parts, plan.besides_w)))
    predicted = _figures(predicted_plan.prediction)
    return {
        "model": plan.run.model,
        "steps": plan.run.steps,
        "steps_made": made,
        "server": plan.server,
        "strategy": plan.run.strategy.as_text(),
        "optimizer": plan.run.strategy.optimizer.as_text(),
        "engine": plan.run.engine.text,
        "workers": {
            name: {**_encoded(part), "framework": planned[name].framework, "predicted_steps": planned[name].steps}
            for name, part in parts.items()
        },
        "predicted": {
            **predicted,
            "energy_uncertainty": plan.energy_uncertainty,
            "provenance": json_value(Provenance.joined(worker.watts.source for worker in plan.workers)),
            "wall_s": None if evaluation_planned_s is None else predicted_plan.prediction.time_s + evaluation_planned_s,
            "evaluation_s": evaluation_planned_s,
        },
        "measured": {
            **measured,
            "energy_uncertainty": uncertainty(_error(parts, plan.besides_w)),
            "provenance": json_value(Provenance.joined(part.provenance for part in parts.values())),
            "wall_s": account.elapsed_s,
            "evaluation_s": evaluation_s,
        },
        "error": {key: _relative(measured[key], predicted[key]) for key in measured},
        "besides_w": plan.besides_w,
        "evaluations": json_value(account.evaluations),
        "notes": [
            *(f"{name}: {note}" for name, part in parts.items() for note in part.notes),
            *(deviation_notes(predicted_plan, time_s, parts, before_the_end, evaluation_s) if made else ()),
            *(notes_scaled(plan.run.strategy) if predicted_plan is not plan else ()),
        ],
        "service_s": account.service_s,
    }


def finite(value: Any) -> Any:
    """JSON values with null for numbers that JSON does not have; a device may send any."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _encoded(part: WorkerResult) -> dict[str, Any]:
    """The worker's result; without a stream of samples, or data injection, without that key."""
    found: dict[str, Any] = json_value(part)
    return {key: value for key, value in found.items() if value is not None or key not in ("stream", "injected")}


def end_of(account: RunAccount, rule: StopRule) -> dict[str, Any]:
    """``ended``: why a run ended before its last step, or null; ``target``: whether it was reached.

    target: {"metric", "value", "reached", "step"}, or null without one.
    """
    ended = account.reason if account.reason in EARLY_ENDS else None
    if rule.target is None:
        return {"ended": ended, "target": None}
    first = next((each.step for each in account.evaluations if rule.target.reached(each)), None)
    metric, value, _ = rule.target
    target = {"metric": metric, "value": value, "reached": first is not None, "step": first}
    return {"ended": ended, "target": target}


def learning_notes(evaluations: Sequence[Evaluated], classes: int) -> list[str]:
    """A note where the last evaluation is no better than guessing."""
    loss = evaluations[-1].loss if evaluations else 0.0
    if loss < math.log(classes):
        return []
    return [
        f"nothing was learnt: the last loss, {loss:.3f}, is not below {math.log(classes):.3f}, that of guessing among "
        f"{classes} classes; lower the learning rate, or train for longer"
    ]


def _figures(of: Prediction) -> dict[str, float | None]:
    return {"time_s": of.time_s, "power_w": of.power_w, "energy_j": of.energy_j, "edp_js": of.edp_js}


def _total_w(parts: Mapping[str, WorkerResult], besides_w: float) -> float | None:
    """Watts of all workers, plus ``besides_w``; None where those of a worker are unknown."""
    known = [part.watts for part in parts.values() if part.watts is not None]
    return math.fsum([*known, besides_w]) if len(known) == len(parts) else None


def _evaluation_s(
    evaluations: Sequence[Evaluated], planned: Mapping[str, PlannedWorker], shares: Mapping[str, float]
) -> float | None:
    """Predicted seconds by which evaluations hold the run up; None where one of them is unknown.

    shares: by worker, of the seconds of its evaluations.
    """
    found = 0.0
    for each in evaluations:
        sample_s = planned[each.worker].evaluation_s if each.worker in planned else None
        if sample_s is None or not each.samples:
            return None
        found += each.samples * sample_s * shares.get(each.worker, 0.0)
    return found


def _error(parts: Mapping[str, WorkerResult], besides_w: float) -> float | None:
    """Relative standard error of ``_total_w``; None where that of a worker is unknown."""
    total_w = _total_w(parts, besides_w)
    errors_w = [part.watts * part.watts_error for part in parts.values() if part.watts and part.watts_error is not None]
    return math.hypot(*errors_w) / total_w if total_w and len(errors_w) == len(parts) else None


def _relative(measured: float | None, predicted: float | None) -> float | None:
    """How far the prediction was from the measurement, as a share of the measurement."""
    if measured is None or predicted is None or measured == 0:
        return None
    return predicted / measured - 1.0
