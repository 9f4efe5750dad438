"""A worker's part in a run: its steps, where its time went, and its power. Pure."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from backends.protocol.events import RunAccount
from planner.plan.file import Plan, PlannedWorker
from planner.profile.power_readings import WindowWatts, disagreements, flagged, parts_watts, whole_watts
from planner.provenance import AT_BUSY_SHARE, COUNTER, SENSOR, Provenance
from planner.train.injection import injected_result
from planner.train.stream_results import stream_faults, stream_result
from planner.train.telemetry import MemberReports
from power_models import nameplate
from profilers.records.readings import MODEL, UNAVAILABLE, Window


class WorkerResult(NamedTuple):
    """One worker over the whole run.

    busy_s, exchange_s, evaluation_s: seconds that it computed, exchanged and evaluated.
    watts: mean power; None where unknown.
    provenance: where the watts come from.
    watts_error: relative standard error of the watts; None where unknown.
    notes: contradictions between its sensors, and faults of its stream.
    starts: how often it was started; more than once if it was lost.
    build_s: seconds that its model took to build.
    sender: figures of its compressor at the end.
    data_s: of ``busy_s``, seconds that it waited for batches to be read.
    stream: of its stream of samples, as ``streams.stream_result`` has it; None without one.
    injected: of samples given and received, as ``injection.injected_result`` has it, or None.
    """

    steps: int
    busy_s: float
    exchange_s: float
    evaluation_s: float
    watts: float | None
    provenance: Provenance
    watts_error: float | None = None
    notes: tuple[str, ...] = ()
    starts: int = 1
    build_s: float | None = None
    sender: Mapping[str, Any] = {}
    data_s: float = 0.0
    stream: Mapping[str, Any] | None = None
    injected: Mapping[str, Any] | None = None


def worker_results(plan: Plan, account: RunAccount, reports: Mapping[str, MemberReports]) -> dict[str, WorkerResult]:
    """The result of each worker.

    Watts come from sensors, averaged over the windows by their length. Where there are none, they
    follow from the plan's idle and busy watts and the worker's busy share of the run: the time it
    computed, and the processor time of exchanges and of the server's work, as in the prediction.
    A sensor of the whole device counts first and sensors of its parts last, as in the plan, so that
    prediction and measurement cover the same parts.
    """
    result = {}
    for planned in plan.workers:
        name, told = planned.name, reports[planned.name]
        columns = zip(*(start.spent for start in told.starts), strict=True)
        _, busy_s, exchange_s, evaluation_s, cpu_s, _, data_s = map(math.fsum, columns)
        if name == plan.server:
            cpu_s += account.cpu_s
        loaded_s = busy_s + evaluation_s + cpu_s / planned.cores
        measured = told.power.average()
        found = watts(planned, measured, loaded_s / account.elapsed_s if account.elapsed_s else 0.0)
        steps = account.workers[name].steps if name in account.workers else 0
        result[name] = WorkerResult(
            steps, busy_s, exchange_s, evaluation_s, found.watts, found.provenance, found.error,
            (*disagreements(measured), *stream_faults(told)), len(told.starts), told.built_s, told.compressor, data_s,
            stream_result([start.stream for start in told.starts if start.stream], account.elapsed_s, planned.stream),
            injected_result([start.injected for start in told.starts if start.injected]),
        )  # fmt: skip
    return result


def watts(planned: PlannedWorker, measured: Window, busy_share: float) -> WindowWatts:
    """A worker's mean watts and their source, chosen as ``worker_results`` describes."""
    whole, parts = whole_watts(measured), parts_watts(measured)
    share = _at_busy_share(planned, busy_share)
    order = (whole, parts, share) if planned.watts.source.partial else (whole, share, parts)
    why = "; ".join(flagged(measured)) or f"{planned.name} has no sensor and no watts planned"
    nothing = WindowWatts(None, None, Provenance(UNAVAILABLE, detail=why))
    found = next((each for each in order if each is not None), nothing)
    emulated = found.provenance.emulated or planned.watts.source.emulated
    return found._replace(provenance=found.provenance._replace(emulated=emulated))


def _at_busy_share(planned: PlannedWorker, busy_share: float) -> WindowWatts | None:
    """The watts from the plan at this busy share, where they are known.

    They are an estimate, even where the plan's own watts were measured.
    """
    idle_w, busy_w, _, source = planned.watts
    if idle_w is None or busy_w is None:
        return None
    fraction = np.asarray(min(1.0, busy_share))
    mean_w = nameplate.watts(np.asarray(idle_w), np.asarray(busy_w), fraction)
    kind = MODEL if source.kind in (COUNTER, SENSOR) else source.kind
    return WindowWatts(float(mean_w), None, source._replace(kind=kind).noting(AT_BUSY_SHARE))
