"""What a run came to, beside what was predicted of it. Pure."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from backends.protocol.events import Evaluated, RunAccount, TimeSpent
from planner.plan.file import Plan, PlannedWorker
from planner.predict.batch_size import notes_scaled
from planner.predict.predict import Prediction
from planner.profile.power_readings import WindowWatts, average, disagreements, parts_watts, uncertainty, whole_watts
from planner.provenance import AT_BUSY_SHARE, COUNTER, SENSOR, Provenance
from power_models import nameplate
from profilers.records import MODEL, UNAVAILABLE, Window, encode


class WorkerResult(NamedTuple):
    """One worker over the run: seconds of its life spent each way, watts and where they come from.

    watts: None where unknown; watts_error: their relative standard error, None where unknown; notes: where its sensors
    contradict each other.
    """

    steps: int
    busy_s: float
    exchange_s: float
    evaluation_s: float
    watts: float | None
    provenance: Provenance
    watts_error: float | None = None
    notes: tuple[str, ...] = ()


def workers(
    plan: Plan,
    account: RunAccount,
    windows: Mapping[str, Sequence[Window]],
    spent: Mapping[str, Sequence[TimeSpent]],
) -> dict[str, WorkerResult]:
    """Each worker's part. ``windows``: what its sensors said, in turn; ``spent``: time in each of its lives.

    Watts come from sensors, averaged over the windows by their length, or from the plan's idle and busy watts and
    the share of the run's time that it was busy: computing, and its processors' part of the exchanges and of the
    server's work, as the prediction has it. A sensor of the whole device counts first and sensors of its parts
    last, as in the plan, so that predicted and measured cover the same.
    """
    result = {}
    for planned in plan.workers:
        name = planned.name
        lives = spent[name]
        busy, exchange = math.fsum(life.busy_s for life in lives), math.fsum(life.exchange_s for life in lives)
        evaluation = math.fsum(life.evaluation_s for life in lives)
        cpu = math.fsum(life.exchange_cpu_s for life in lives)
        if name == plan.server and len(plan.workers) > 1:  # alone, the account's processor time is that of its steps
            cpu += account.cpu_s
        loaded_s = busy + evaluation + cpu / planned.cores
        measured = average(list(windows[name]))
        found = watts(planned, measured, loaded_s / account.elapsed_s if account.elapsed_s else 0.0)
        steps = account.workers[name].steps if name in account.workers else 0
        result[name] = WorkerResult(
            steps, busy, exchange, evaluation, found.watts, found.provenance, found.error, disagreements(measured)
        )
    return result


def watts(planned: PlannedWorker, measured: Window, busy_share: float) -> WindowWatts:
    """A worker's mean watts, and their source, as ``workers`` says."""
    whole, parts = whole_watts(measured), parts_watts(measured)
    share = _at_busy_share(planned, busy_share)
    order = (whole, parts, share) if planned.power_source.partial else (whole, share, parts)
    nothing = WindowWatts(
        None, None, Provenance(UNAVAILABLE, detail=f"{planned.name} has no sensor and no watts planned")
    )
    found = next((each for each in order if each is not None), nothing)
    emulated = found.provenance.emulated or planned.power_source.emulated
    return found._replace(provenance=found.provenance._replace(emulated=emulated))


def _at_busy_share(planned: PlannedWorker, busy_share: float) -> WindowWatts | None:
    """The plan's watts, where they are known. What was measured then is only estimated now."""
    if planned.idle_w is None or planned.busy_w is None:
        return None
    fraction = np.asarray(min(1.0, busy_share))
    mean_w = nameplate.watts(np.asarray(planned.idle_w), np.asarray(planned.busy_w), fraction)
    source = planned.power_source
    kind = MODEL if source.kind in (COUNTER, SENSOR) else source.kind
    return WindowWatts(float(mean_w), None, source._replace(kind=kind).noting(AT_BUSY_SHARE))


def result(
    plan: Plan,
    account: RunAccount,
    parts: Mapping[str, WorkerResult],
    built_s: Mapping[str, float],
    senders: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """result.json: measured beside predicted time, power, energy and EDP, and each worker's part.

    The training time is the wall time from the word to begin until the last update, less what evaluations on
    the way cost the cluster: the evaluating worker's seconds, times its share of the steps where nobody waits for it.
    The power is the workers', and ``besides_w`` as planned. A run that was resumed is compared with a prediction of
    the steps that it made itself. energy_uncertainty: half the 95 % interval of the energy, as a share, null where
    unknown.
    """
    made = sum(part.steps for part in parts.values())
    predicted_plan = plan if made in (0, plan.steps) else plan.for_steps(made)
    planned = {worker.name: worker for worker in predicted_plan.workers}
    on_the_way = [each for each in account.evaluations if each.step < plan.steps]
    held_up = plan.strategy.evaluation_stops_all(len(plan.workers))
    shares = {name: 1.0 if held_up else part.steps / max(1, made) for name, part in parts.items()}
    evaluation_s = math.fsum(each.seconds * shares[each.worker] for each in on_the_way)
    time_s = account.elapsed_s - evaluation_s
    measured = figures(Prediction(time_s, _total_w(parts, plan.besides_w)))
    predicted = figures(predicted_plan.prediction)
    return {
        "model": plan.model,
        "steps": plan.steps,
        "steps_made": made,
        "server": plan.server,
        "strategy": plan.strategy.as_text(),
        "workers": {
            name: {
                **encode(part),
                "framework": planned[name].framework,
                "predicted_steps": planned[name].steps,
                "build_s": built_s.get(name),
                "sender": senders.get(name, {}),
            }
            for name, part in parts.items()
        },
        "predicted": {
            **predicted,
            "energy_uncertainty": plan.energy_uncertainty,
            "provenance": encode(Provenance.joined(worker.power_source for worker in plan.workers)),
        },
        "measured": {
            **measured,
            "energy_uncertainty": uncertainty(_error(parts, plan.besides_w)),
            "provenance": encode(Provenance.joined(part.provenance for part in parts.values())),
            "wall_s": account.elapsed_s,
            "evaluation_s": evaluation_s,
        },
        "error": {key: _relative(measured[key], predicted[key]) for key in measured},
        "besides_w": plan.besides_w,
        "evaluations": encode(account.evaluations),
        "notes": [*_notes(plan, parts), *(notes_scaled(plan.strategy) if predicted_plan is not plan else ())],
        "service_s": account.service_s,
    }


def learnt(evaluations: Sequence[Evaluated], classes: int) -> list[str]:
    """What there is to say where the last evaluation is no better than guessing, as after steps that were too long."""
    loss = evaluations[-1].loss if evaluations else 0.0
    if loss < math.log(classes):
        return []
    return [
        f"nothing was learnt: the last loss, {loss:.3f}, is not below {math.log(classes):.3f}, that of guessing among "
        f"{classes} classes; lower the learning rate, or train for longer"
    ]


def figures(of: Prediction) -> dict[str, float | None]:
    """The four metrics."""
    return {"time_s": of.time_s, "power_w": of.power_w, "energy_j": of.energy_j, "edp_js": of.edp_js}


def _total_w(parts: Mapping[str, WorkerResult], besides_w: float) -> float | None:
    """Watts of all workers and besides; None where those of one are unknown."""
    known = [part.watts for part in parts.values() if part.watts is not None]
    return math.fsum([*known, besides_w]) if len(known) == len(parts) else None


def _error(parts: Mapping[str, WorkerResult], besides_w: float) -> float | None:
    """Relative standard error of ``_total_w``; None where that of one is unknown."""
    total_w = _total_w(parts, besides_w)
    errors_w = [part.watts * part.watts_error for part in parts.values() if part.watts and part.watts_error is not None]
    return math.hypot(*errors_w) / total_w if total_w and len(errors_w) == len(parts) else None


def _notes(plan: Plan, parts: Mapping[str, WorkerResult]) -> list[str]:
    told = [f"{name}: {note}" for name, part in parts.items() for note in part.notes]
    if plan.predicted_strategy is not None:
        told.insert(0, f"predicted for {plan.predicted_strategy.text}, trained with {plan.strategy.text}")
    return told


def _relative(measured: float | None, predicted: float | None) -> float | None:
    """How far the prediction was from the measurement, as a share of the measurement."""
    if measured is None or predicted is None or measured == 0:
        return None
    return predicted / measured - 1.0
