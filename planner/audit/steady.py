"""From the folder of a short run to its steady state: what each worker's steps take once all of them work.

A worker tells every few seconds how many steps it has made and what they cost. Between two such reports lie whole
steps, so that seconds over steps is T_i^C without any rounding. The steady state begins when every worker whose share
of the steps counts has made WARM_STEPS of them, and ends when the first worker finds no step left to make, or the run
is told that it is enough.
"""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from backends.training.step import TimeSpent
from planner.audit.scoring.measured import Extrapolation, MeasuredRun, Steady
from planner.errors import RecordError
from planner.json_records import load
from planner.paths import RunFolder
from planner.plan.file import Plan, PlannedWorker
from planner.profile.file import Profile
from planner.train import result
from profilers.records import StepProfile

WARM_STEPS = 2
#: A worker that makes a smaller share of all steps need not be waited for.
SHARE_THAT_COUNTS = 0.02
#: Events after which a worker's reports begin anew, or end.
LOSSES = frozenset({"lost", "dropped", "replaced", "given_up"})
REMEDY = "remove the folder and repeat the audit"


class SteadyReport(NamedTuple):
    """What a worker told: seconds since the log began, where its time went so far, what its sensors said since last."""

    t_s: float
    spent: TimeSpent
    window: Mapping[str, Any]


class RunLog(NamedTuple):
    """A run's events: reports and build seconds by worker, until when there was work for all, the server's account."""

    reports: dict[str, list[SteadyReport]]
    built_s: dict[str, float]
    end_s: float
    account: dict[str, Any]


def steady(folder: RunFolder, profile: Profile, repetition: int) -> MeasuredRun:
    """The steady state of a run that has ended. Raises RecordError where its folder does not hold one."""
    plan, log = load(Plan, folder.plan, REMEDY), read(folder)
    begin_s, parts = _window(folder, plan, log)
    server_share = float(log.account["cpu_s"]) / float(log.account["elapsed_s"]) if len(plan.workers) > 1 else 0.0
    workers, rate_errors, power_errors = {}, [], []
    for planned in plan.workers:
        name, part = planned.name, parts[planned.name]
        hosted = server_share / planned.cores if name == plan.server else 0.0
        said = result.averaged(name, [each.window for each in part[1:]])  # the first tells of before the steady state
        found = result.watts(planned, said, _busy_share(part, planned) + hosted)
        rate = _rate(part)
        drift = _drift(part, _profiled(profile, plan, name))
        built_s = log.built_s.get(name, planned.build_s)
        workers[name] = Steady(rate, built_s, found.watts, found.provenance, drift)
        rate_errors.append(rate * _rate_error(part) if rate else 1 / (log.end_s - begin_s))
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
    )


def extrapolation(folder: RunFolder, short: MeasuredRun) -> Extrapolation:
    """What a short run foretells of the time of a longer one of its configuration, beside what that took.

    Raises RecordError where the folder does not hold the longer run.
    """
    plan, log = load(Plan, folder.plan, REMEDY), read(folder)
    evaluation_s = math.fsum(each["seconds"] for each in log.account["evaluations"] if each["step"] < plan.steps)
    foretold_s = short.time_s(int(log.account["done"]))
    return Extrapolation(
        plan.model, plan.server, plan.names, foretold_s, float(log.account["elapsed_s"]) - evaluation_s
    )


def read(folder: RunFolder) -> RunLog:
    """The events of a run that has ended. Raises RecordError for a log that is cut off or missing."""
    reports: dict[str, list[SteadyReport]] = {}
    built_s: dict[str, float] = {}
    end_s, enough, account = 0.0, False, None
    try:
        with folder.events.open(encoding="utf-8") as lines:
            for event in map(json.loads, lines):
                name, t_s = event["from"], event["t_s"]
                if "spent" in event and "window" in event:
                    reports.setdefault(name, []).append(SteadyReport(t_s, TimeSpent(**event["spent"]), event["window"]))
                elif "built_s" in event:
                    built_s[name] = event["built_s"]
                elif "progress" in event:
                    at = event["progress"]
                    if not enough and at["done"] < at["total"] - len(at["workers"]):  # whoever is free finds a step
                        end_s = t_s
                elif "enough" in event:
                    enough = True
                elif LOSSES & event.keys() and not enough:  # then the server cuts off who is in the middle of something
                    raise RecordError(f"{folder.events}: {name} was lost on the way; {REMEDY}")
                elif "account" in event:
                    account = event["account"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{folder.events}: {error}; {REMEDY}") from error
    if account is None:
        raise RecordError(f"{folder.events}: the run did not end; {REMEDY}")
    return RunLog(reports, built_s, end_s, account)


def _window(folder: RunFolder, plan: Plan, log: RunLog) -> tuple[float, dict[str, list[SteadyReport]]]:
    """When the steady state began, and each worker's reports within it."""
    before = {name: [each for each in log.reports.get(name, ()) if each.t_s <= log.end_s] for name in plan.names}
    made = {name: part[-1].spent.steps if part else 0 for name, part in before.items()}
    least = max(WARM_STEPS, SHARE_THAT_COUNTS * sum(made.values()))
    warm = [part for name, part in before.items() if made[name] >= least]
    begin_s = max((next(e.t_s for e in part if e.spent.steps >= WARM_STEPS) for part in warm), default=math.inf)
    parts = {name: [each for each in part if each.t_s >= begin_s] for name, part in before.items()}
    short = [name for name, part in parts.items() if len(part) < 2 or (made[name] >= least and not _rate(part))]
    if short:
        raise RecordError(f"{folder.path}: too short to see {', '.join(short)} at work; audit with more --seconds")
    return begin_s, parts


def _rate(part: Sequence[SteadyReport]) -> float:
    """Steps/s between the first and the last report; 0 where no step ended between them."""
    cycle_s = _cycle_s(part[0].spent, part[-1].spent) if part else None
    return 1 / cycle_s if cycle_s else 0.0


def _cycle_s(before: TimeSpent, after: TimeSpent) -> float | None:
    steps = after.steps - before.steps
    seconds = after.busy_s + after.exchange_s - before.busy_s - before.exchange_s
    return seconds / steps if steps else None


def _rate_error(part: Sequence[SteadyReport]) -> float:
    """Relative standard error of ``_rate``, from the means between reports; with one mean a whole step is in doubt."""
    pairs = zip(part, part[1:], strict=False)
    cycles_s = [cycle_s for a, b in pairs if (cycle_s := _cycle_s(a.spent, b.spent)) is not None]
    if len(cycles_s) > 1:
        return statistics.stdev(cycles_s) / math.sqrt(len(cycles_s)) / statistics.mean(cycles_s)
    return 1 / (part[-1].spent.steps - part[0].spent.steps) if cycles_s else 0.0


def _busy_share(part: Sequence[SteadyReport], planned: PlannedWorker) -> float:
    """Of a worker's time: computing, and its processors' part of the exchanges."""
    if not _rate(part):
        return 0.0
    before, after = part[0].spent, part[-1].spent
    loaded_s = after.busy_s - before.busy_s + (after.exchange_cpu_s - before.exchange_cpu_s) / planned.cores
    return loaded_s / (after.busy_s + after.exchange_s - before.busy_s - before.exchange_s)


def _drift(part: Sequence[SteadyReport], profiled: StepProfile | None) -> float:
    """Processor seconds of a gradient over those when it was profiled; 1 where another accelerator computes."""
    if profiled is None or profiled.accelerator != "cpu" or not _rate(part) or not profiled.cpu_s_per_step:
        return 1.0
    before, after = part[0].spent, part[-1].spent
    return (after.gradient_cpu_s - before.gradient_cpu_s) / (after.steps - before.steps) / profiled.cpu_s_per_step


def _profiled(profile: Profile, plan: Plan, name: str) -> StepProfile | None:
    known = (plan.model, plan.frameworks[name], plan.batch)
    steps = profile.devices[name].steps if name in profile.devices else ()
    return next((step for step in steps if (step.model, step.framework, step.batch) == known), None)
