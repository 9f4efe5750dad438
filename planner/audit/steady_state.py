"""The steady state of a short run gives the step time of each worker while all are busy.

The host of a run counts the steps of each worker twice a second. Workers report every second what
theirs cost. The steady state begins when every counted worker has made WARM_STEPS steps. It ends
when the first worker finds no step left to make, or when the run is stopped. Where the counts of a
worker hardly grow in it, what its steps cost stands for T_i^C.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from backends.protocol.events import Built, Dropped, MemberTelemetry, Progress, Replaced, RunAccount, TimeSpent
from planner.audit import counted_steps
from planner.audit.scoring.measured import Extrapolation, MeasuredRun, SteadyWorker
from planner.errors import RecordError
from planner.json_records import load
from planner.paths import RunFolder
from planner.plan.file import Plan, PlannedWorker
from planner.profile.machine_speed import joined_speed
from planner.profile.power_readings import average
from planner.train import event_log, worker_result
from planner.train.events import MemberGivenUp, MemberLost, RunEnded, TimeOver
from profilers.records.readings import MachineSpeed, Window

WARM_STEPS = 2
#: Minimum share of all steps of a counted worker; the steady state does not wait for others.
SHARE_THAT_COUNTS = 0.02
#: Parts of the steady state whose speeds are compared.
THIRDS = 3
#: Rounds of the reference loop whose mean is compared: one varies by about a tenth.
FEWEST_ROUNDS = 5
#: Events that restart or end the reports of a worker.
LOSSES = (MemberLost, Dropped, Replaced, MemberGivenUp)
REMEDY = "remove the folder and repeat the audit"


class WorkerReport(NamedTuple):
    """A report at ``t_s``: time spent since the run began, readings since the last report."""

    t_s: float
    spent: TimeSpent
    window: Window
    speed: MachineSpeed | None = None


class RunLog(NamedTuple):
    """The events of a run that an audit needs.

    counts: what the host had counted, by time.
    end_s: time until which there was work for all workers.
    account: totals of the server.
    """

    reports: dict[str, list[WorkerReport]]
    built_s: dict[str, float]
    counts: list[tuple[float, Progress]]
    end_s: float
    account: RunAccount


def steady_state(folder: RunFolder, repetition: int) -> MeasuredRun:
    """The steady state of a finished run. Raises RecordError where its folder holds none."""
    plan, log = load(Plan, folder.plan, REMEDY), read_log(folder)
    begin_s, parts = _window(folder, plan, log)
    counts = [each for t_s, each in log.counts if begin_s <= t_s <= log.end_s]
    server_share = log.account.cpu_s / log.account.elapsed_s if len(plan.workers) > 1 else 0.0
    workers, rate_errors, power_errors = {}, [], []
    for planned in plan.workers:
        name, part = planned.name, parts[planned.name]
        spent = _spent(part)
        hosted = server_share / planned.cores if name == plan.server else 0.0
        readings = average([each.window for each in part[1:]])  # the first window precedes the steady state
        counted = counted_steps.rate(counts, name)
        rate = counted.steps_per_s if counted else _rate(spent)
        found = worker_result.watts(planned, readings, rate * _busy_s(spent, planned) + hosted)
        speed = joined_speed(each.speed for each in part[1:])
        built_s = log.built_s.get(name, planned.build_s) + _first_steps_s(part[0].spent, spent)
        workers[name] = SteadyWorker(rate, built_s, found.watts, found.provenance, speed)
        error = math.hypot(_rate_error(part), counted.error if counted else 0.0)
        rate_errors.append(rate * error if rate else 1 / (log.end_s - begin_s))
        power_errors.append((found.watts or 0.0) * (found.error or 0.0))
    total = math.fsum(worker.steps_per_s for worker in workers.values())
    power = math.fsum(worker.watts or 0.0 for worker in workers.values())
    return MeasuredRun(
        model=plan.model,
        server=plan.server,
        workers=workers,
        repetition=repetition,
        window_s=log.end_s - begin_s,
        rate_error=math.hypot(*rate_errors) / total,
        power_error=math.hypot(*power_errors) / power if power else 0.0,
        disturbance=max(_disturbance([each.speed for each in part[1:]]) for part in parts.values()),
    )


def extrapolation(folder: RunFolder, short: MeasuredRun) -> Extrapolation:
    """The duration of a long run, measured and extrapolated from a short one."""
    plan, log = load(Plan, folder.plan, REMEDY), read_log(folder)
    evaluation_s = math.fsum(each.seconds for each in log.account.evaluations if each.step < plan.steps)
    extrapolated_s = short.time_s(log.account.done)
    return Extrapolation(plan.model, plan.server, plan.names, extrapolated_s, log.account.elapsed_s - evaluation_s)


def read_log(folder: RunFolder) -> RunLog:
    """The events of a finished run. Raises RecordError for a truncated or missing log."""
    reports: dict[str, list[WorkerReport]] = {}
    built_s: dict[str, float] = {}
    counts: list[tuple[float, Progress]] = []
    end_s, enough = 0.0, False
    account: RunAccount | None = None
    try:
        for t_s, name, event in event_log.read(folder.events):
            if isinstance(event, MemberTelemetry):
                reports.setdefault(name, []).append(WorkerReport(t_s, event.spent, event.window, event.speed))
            elif isinstance(event, Built):
                built_s[name] = event.build_s
            elif isinstance(event, Progress):
                counts.append((t_s, event))
                if not enough and event.done < event.total - len(event.workers):
                    end_s = t_s
            elif isinstance(event, TimeOver):
                enough = True
            elif isinstance(event, LOSSES) and not enough:
                raise RecordError(f"{folder.events}: {name} was lost during the run; {REMEDY}")
            elif isinstance(event, RunEnded):
                account = event.account
    except (OSError, ValueError) as error:
        raise RecordError(f"{folder.events}: {error}; {REMEDY}") from error
    if account is None:
        raise RecordError(f"{folder.events}: the run did not end; {REMEDY}")
    return RunLog(reports, built_s, counts, end_s, account)


def _window(folder: RunFolder, plan: Plan, log: RunLog) -> tuple[float, dict[str, list[WorkerReport]]]:
    """The begin of the steady state, and each worker's reports within it."""
    before = {name: [each for each in log.reports.get(name, ()) if each.t_s <= log.end_s] for name in plan.names}
    made = {name: part[-1].spent.steps if part else 0 for name, part in before.items()}
    least = max(WARM_STEPS, SHARE_THAT_COUNTS * sum(made.values()))
    warm = [part for name, part in before.items() if made[name] >= least]
    begin_s = max((next(e.t_s for e in part if e.spent.steps >= WARM_STEPS) for part in warm), default=math.inf)
    parts = {name: [each for each in part if each.t_s >= begin_s] for name, part in before.items()}
    short = [name for name, part in parts.items() if len(part) < 2 or (made[name] >= least and not _rate(_spent(part)))]
    if short:
        raise RecordError(f"{folder.path}: too few steps of {', '.join(short)}; audit with more --seconds")
    return begin_s, parts


def _spent(part: Sequence[WorkerReport]) -> TimeSpent:
    """The time spent between the first and the last report."""
    return TimeSpent._make(after - before for before, after in zip(part[0].spent, part[-1].spent, strict=True))


def _rate(spent: TimeSpent) -> float:
    """Steps/s of a worker by what its steps cost; 0 without a step."""
    seconds = spent.busy_s + spent.exchange_s
    return spent.steps / seconds if seconds else 0.0


def _first_steps_s(before: TimeSpent, steady: TimeSpent) -> float:
    """Seconds that steps before the steady state computed longer than as many in it."""
    usual_s = steady.busy_s / steady.steps if steady.steps else math.inf
    return max(0.0, before.busy_s - before.steps * usual_s) if before.steps else 0.0


def _rate_error(part: Sequence[WorkerReport]) -> float:
    """Relative standard error of ``_rate`` from the means between reports; of one mean, a step."""
    rates = [rate for pair in itertools.pairwise(part) if (rate := _rate(_spent(pair)))]
    if len(rates) > 1:
        cycles_s = [1 / rate for rate in rates]
        return statistics.stdev(cycles_s) / math.sqrt(len(cycles_s)) / statistics.mean(cycles_s)
    return 1 / _spent(part).steps if rates else 0.0


def _busy_s(spent: TimeSpent, planned: PlannedWorker) -> float:
    """Seconds of a step in which a worker computes or its processors handle exchanges."""
    if not spent.steps:
        return 0.0
    return (spent.busy_s + spent.exchange_cpu_s / planned.cores) / spent.steps


def _disturbance(speeds: Sequence[MachineSpeed | None]) -> float:
    """``MeasuredRun.disturbance`` of one worker; 0 where a third has too few rounds to tell."""
    ends = [len(speeds) * third // THIRDS for third in range(THIRDS + 1)]
    means = [joined_speed(speeds[begin:end]) for begin, end in itertools.pairwise(ends)]
    loops_s = [each.loop_s for each in means if each is not None and each.loop_s and each.rounds >= FEWEST_ROUNDS]
    return max(loops_s) / min(loops_s) - 1.0 if len(loops_s) == THIRDS else 0.0
