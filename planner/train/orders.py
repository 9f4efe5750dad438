"""A run starts with its options, the data of each worker and the orders for its members."""

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from backends.data.partition import Partition
from backends.frameworks.optimizer import MOMENTUM, SLOT_NAMES
from backends.jobs.metric_names import HIGHER, LOWER
from backends.protocol.member_specs import IID, HostAddress, InjectionOrder, MemberSpec, StreamOrder
from backends.strategies.data_injection import InjectionSpec
from backends.strategies.local_updates import EVERY, SECONDS
from backends.strategies.strategy import Strategy
from backends.strategies.synchronisation import SYNC_POLICIES, SyncPolicy
from backends.training.lr_schedule import KINDS, RateSchedule
from backends.training.run_orders import RunPeer, RunRank, RunWorker
from backends.training.run_spec import Checkpoints, RunSpec
from backends.training.step_watch import first_limit_s
from backends.training.stopping import MetricTarget, StopRule
from planner.errors import PlanError, suggest
from planner.plan.file import Plan, PlannedWorker
from planner.train.training_data import Placed, TrainingData

#: Default of the momentum that explicit momentum and asynchrony make together.
TOTAL_MOMENTUM = 0.9
#: Seconds between checkpoints where none are asked for: to write one and to fetch it takes
#: processor and link from the training.
BETWEEN_S = 60.0
#: What an evaluation may take: so many times as predicted, or these seconds where that is unknown.
EVALUATION_FACTOR, UNKNOWN_EVALUATION_S = 3.0, 1800.0


class Options(NamedTuple):
    """How to carry out a plan: nothing of it changes how long a step is predicted to take.

    data: the directory of the data set; empty for a job.
    warmup: steps.
    evaluate_every: steps; 0 for once an epoch.
    checkpoint_every: steps; 0 for once a minute by the clock.
    heartbeat_s: seconds of silence after which a worker is dropped.
    keep_weights: without it, no checkpoint is written.
    rate, weight_decay: None for the optimizer's default.
    partition: how samples are divided among devices, text of a ``data.partition.Partition``.
    target: METRIC=VALUE or METRIC=VALUE:lower, at which the run ends; None for none.
    patience: evaluations without a better value after which it ends; 0 for no limit.
    inject: text of an ``InjectionSpec``, by which devices give one another samples; None for never.
    """

    data: str = ""
    rate: float | None = None
    momentum: float | None = None
    weight_decay: float | None = None
    schedule: str = "constant"
    warmup: int = 0
    seed: int = 0
    evaluate_every: int = 0
    checkpoint_every: int = 0
    heartbeat_s: float = 10.0
    keep_weights: bool = True
    target: str | None = None
    patience: int = 0
    partition: str = IID
    inject: str | None = None


def check(options: Options) -> None:
    """Raises PlanError naming the option, its value and the values that are valid."""
    if options.schedule not in KINDS:
        raise PlanError(f"--schedule {options.schedule}: unknown; {suggest(options.schedule, KINDS)}")
    positive = {"learning-rate": options.rate, "heartbeat": options.heartbeat_s}
    for name, value in positive.items():
        if value is not None and not 0 < value < math.inf:
            raise PlanError(f"--{name} {value:g}: give a finite number above 0")
    if options.weight_decay is not None and not 0 <= options.weight_decay < math.inf:
        raise PlanError(f"--weight-decay {options.weight_decay:g}: give a finite number of at least 0")
    try:
        Partition.from_text(options.partition)
    except ValueError as error:
        raise PlanError(f"--partition {options.partition}: {error}") from error
    if options.inject is not None:
        try:
            InjectionSpec.from_text(options.inject)
        except ValueError as error:
            raise PlanError(f"--inject {options.inject}: {error}") from None
    if options.momentum is not None and not 0 <= options.momentum < 1:
        raise PlanError(f"--momentum {options.momentum:g}: give a number from 0 to below 1")
    stop_rule(options)


def stop_rule(options: Options) -> StopRule:
    """When the run ends before its last step. Raises PlanError for a target of another form."""
    if options.target is None:
        return StopRule(None, options.patience)
    metric, equals, rest = options.target.partition("=")
    number, colon, direction = rest.partition(":")
    metric = metric.strip()
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    is_named = metric and not metric.endswith(("<", ">"))
    if not is_named or not equals or not math.isfinite(value) or (colon and direction not in (HIGHER, LOWER)):
        raise PlanError(
            f"--target {options.target}: write METRIC=VALUE, as in accuracy=0.9, or METRIC=VALUE:{LOWER}, or :{HIGHER}"
        )
    return StopRule(MetricTarget(metric, value, direction), options.patience)


def settled_rule(options: Options, metrics: Mapping[str, str]) -> StopRule:
    """The rule with the direction of its target.

    metrics: as in ``Ready``. Raises PlanError for a target that cannot be judged by them.
    """
    rule = stop_rule(options)
    if rule.target is None:
        return rule
    try:
        return rule._replace(target=rule.target.settled(metrics))
    except ValueError as error:
        raise PlanError(f"--target {options.target}: {error}") from error


def check_momentum(options: Options, strategy: Strategy) -> None:
    """Raises PlanError for a momentum where the optimizer has none."""
    name = strategy.optimizer.name
    if options.momentum is not None and MOMENTUM not in SLOT_NAMES[name]:
        raise PlanError(
            f"--momentum {options.momentum:g}: {name} has beta1 in its place; "
            f"give --optimizer {name}:beta1={options.momentum:g}"
        )


def momentum(options: Options, workers: int, sync: SyncPolicy = SYNC_POLICIES["asynchronous"]) -> float:
    """The explicit momentum: the operator's, or that which makes 0.9 together with asynchrony.

    Stale gradients act like momentum: n asynchronous workers add 1 - 1/n of it, so that the
    explicit part m has to satisfy (1 - m) / n = 1 - 0.9 (Mitliagkas et al., Asynchrony begets
    momentum, 2016). With an explicit 0.9 as well, training diverges. Where k workers wait for one
    another, n / k takes the place of n.
    """
    if options.momentum is not None:
        return options.momentum
    return max(0.0, 1.0 - workers / sync.waits_for(workers) * (1.0 - TOTAL_MOMENTUM))


def _momentum_of(plan: Plan, options: Options) -> float:
    """The momentum of gradients; the steps within a round are those of a device alone."""
    how = plan.run_strategy
    return momentum(options, 1 if how.local else len(plan.workers), how.sync)


def member(plan: Plan, options: Options, name: str, placed: Placed, folder: Path) -> MemberSpec:
    """One member, whose model and data are on its device.

    folder: of the run, for names in the device's cache. A resumed run keeps the order of a stream.
    """
    # Runs with neighbouring seeds share no worker's order of samples.
    seed = options.seed * 1009 + plan.names.index(name)
    stream = injection = None
    if plan.run.stream is not None:
        stream = StreamOrder(plan.run.stream.text, seed, options.seed, cache_name(folder, f"stream-{name}"))
    if options.inject is not None and len(plan.names) > 1:
        injection = InjectionOrder(options.inject, seed, cache_name(folder, f"injected-{name}"))
    return MemberSpec(
        name, placed.replica, placed.train, placed.test, plan.batches[name], seed, placed.part, stream, injection,
        _starting_s(plan.workers[plan.names.index(name)]),
    )  # fmt: skip


def _starting_s(worker: PlannedWorker) -> float:
    """Predicted seconds of building its model and of its first step."""
    return worker.build_s + (worker.computing_s or worker.cycle_s)


def wait_s(plan: Plan, samples: int, test_samples: int | None) -> float:
    """Longest wait of a member for the others, one of which may start, or evaluate meanwhile.

    A stream may hold up the samples of a step, or of a round of local steps, for its patience.

    samples: of the training set.
    test_samples: None where they are not known; they may be fewer than those of training, or more.
    """
    patience_s = 0.0 if plan.run.stream is None else plan.run.stream.patience_s
    rounds_s = (first_limit_s(each.build_s + _round_s(plan, each)) for each in plan.workers)
    evaluations_s = (_evaluation_limit_s(each, samples, test_samples) for each in plan.workers)
    return max(rounds_s) + patience_s + max(evaluations_s)


def _round_s(plan: Plan, worker: PlannedWorker) -> float:
    """Predicted seconds between two exchanges of a worker, also of a wait for its samples."""
    local, step_s = plan.run_strategy.local, max(worker.cycle_s, worker.computing_s or 0.0)
    if local.name == "time":
        return max(step_s, local.seconds or SECONDS)
    return step_s * (local.every or EVERY) if local else step_s


def _evaluation_limit_s(worker: PlannedWorker, samples: int, test_samples: int | None) -> float:
    if worker.evaluation_s is None:
        return UNKNOWN_EVALUATION_S
    limit_s = EVALUATION_FACTOR * worker.evaluation_s * (samples if test_samples is None else test_samples)
    return limit_s if test_samples is not None else max(UNKNOWN_EVALUATION_S, limit_s)


def role(
    plan: Plan, options: Options, spec: MemberSpec, host: HostAddress, listens_on: str, waits_s: float
) -> RunWorker | RunPeer:
    """The order for a worker of a server, or for a peer, which listens on an address.

    The momentum of compressors with a residual is the workers' own.
    waits_s: as ``wait_s`` has it.
    """
    how, own = plan.run.strategy, _momentum_of(plan, options)
    optimizer = how.optimizer.settings(options.rate, own, options.weight_decay, plan.run.clip_norm)
    if how.through_server:
        corrects = how.compressor.keeps_residual and not how.local
        return RunWorker(spec, host, plan.run, optimizer, own if corrects else 0.0)
    return RunPeer(spec, host, plan.run, optimizer, listens_on, options.seed, waits_s)


def rank(
    plan: Plan, member: MemberSpec, spec: RunSpec, addresses: Mapping[str, str], waits_s: float, store_port: int = 0
) -> RunRank:
    """The order for a rank; the first is the plan's server.

    addresses: of all devices on the data plane.
    waits_s: as ``wait_s`` has it.
    store_port: of the first rank; 0 in its own order.
    """
    first, name = plan.server, member.name
    names = (first, *(other for other in plan.names if other != first))
    own = spec if name == first else spec._replace(checkpoints=Checkpoints(None, spec.checkpoints.every))
    return RunRank(member, own, names, addresses[name], addresses[first], store_port, waits_s)


def run_spec(plan: Plan, options: Options, data: TrainingData, checkpoint: str | None, resume: str | None) -> RunSpec:
    """The settings of a run for its host.

    A tenth of the run stands for an epoch of data whose samples are not counted.
    checkpoint, resume: paths on its device of the checkpoints to write and to resume from.
    """
    run, how, members = plan.run, plan.run_strategy, len(plan.workers)
    tenth = max(1, run.steps // 10)
    samples = data.samples or plan.samples
    epoch = max(1, samples // run.batch) if samples else tenth
    # The momentum of compressors with a residual is the workers' own.
    theirs = how.compressor.keeps_residual and members > 1
    server_momentum = 0.0 if theirs else _momentum_of(plan, options)
    batches = plan.batches if plan.has_global_batch else {}
    described = {
        "model": run.model, "framework": plan.framework, "batch": run.batch, "steps": run.steps,
        "strategy": how.as_text(), **({"batches": batches} if batches else {}), **data.described(),
    }  # fmt: skip
    return RunSpec(
        run=run._replace(strategy=how),
        optimizer=how.optimizer.settings(options.rate, server_momentum, options.weight_decay, run.clip_norm),
        schedule=RateSchedule(options.schedule, run.steps, options.warmup),
        checkpoints=Checkpoints(
            checkpoint, options.checkpoint_every, resume, described, 0.0 if options.checkpoint_every else BETWEEN_S
        ),
        stop_rule=stop_rule(options),
        evaluate_every=options.evaluate_every or epoch,
        heartbeat_s=options.heartbeat_s,
        members=members,
        host=plan.server,
        batches=batches,
        step_s={each.name: each.computing_s for each in plan.workers if each.computing_s and how.local},
        training_samples=samples or tenth * run.batch,
        seed=options.seed,
        inject=options.inject or "",
    )


def cache_name(folder: Path, suffix: str) -> str:
    """A name for a run's file in a device's cache, unique to the run."""
    return f"run-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]}-{suffix}"
