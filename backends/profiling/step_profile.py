"""Pre-training times one step of a model on this device and samples its counters.

Source: Gu et al., steps 1 and 2.
"""

import functools
from typing import Any, Callable, List, Optional, Tuple, TypeVar

import numpy as np

from backends import models
from backends.data import dataset
from backends.data.loader import ArraySamples, BatchSource, EvaluationSet
from backends.frameworks.base import OWN, SGD, Replica, framework
from backends.profiling import (
    batch_curve,
    between_steps,
    codec_profile,
    cold_caches,
    cold_gradients,
    own_messages,
    update_costs,
)
from backends.profiling.beside_steps import BesideSteps
from backends.profiling.evaluation_speed import evaluation_s
from backends.profiling.own_messages import OwnMessages
from backends.profiling.step_loop import SETTINGS, StepLoop
from backends.profiling.step_memory import MemoryProbe
from backends.protocol.events import StepTimed
from backends.protocol.member_specs import ReplicaSpec
from backends.protocol.orders import RepeatSteps, TimeSteps
from backends.training import step
from backends.training.workload import BuiltReplica, Workload, batches, code_of, workload
from profilers import stats, steptime
from profilers.machine_speed import SpeedMeter
from profilers.records.readings import MachineSpeed, Samples, Window
from profilers.records.steps import Repeat, StepProfile

SYNTHETIC_BATCHES = 8
#: Gradients in which it is noted when each variable has its own.
READY_GRADIENTS = 3
#: Mean seconds of a gradient beyond which a few milliseconds of a process group do not matter, and
#: 18 more gradients would.
LONGEST_GRADIENT_S = 2.0
#: Arrays of the model's size that DistributedDataParallel takes: buckets, and copies at its start.
GROUP_ARRAYS = 3

Made = TypeVar("Made")
#: What a window of steps had beside it.
Measured = Tuple[Window, MachineSpeed]


def time_steps(task: Any, order: TimeSteps) -> StepProfile:
    """Measure one model at one batch size; emits progress. Told to go on, it soon ends.

    Where that batch size does not fit into the memory, a smaller one is measured.
    Raises ValueError for what does not fit together, MemoryError where no batch size fits.
    """
    spec = order.replica
    with code_of(spec):
        return _timed(task, order, workload(spec))


def _timed(task: Any, order: TimeSteps, found: Workload) -> StepProfile:
    spec = order.replica
    built = found.build()
    optimizer = _optimizer(built)
    replica = built.replica
    train, test = _data(found, replica, order.batch)
    drawn = batches(train, order.batch, spec.seed, micro_batch=spec.micro_batch)
    loop = StepLoop(replica, drawn, spec.slowdown, optimizer)
    probe = MemoryProbe.of_this_process(framework(spec.framework))
    first_steps_s: List[float] = []

    def first_step() -> None:
        first_steps_s.append(sum(loop.step()))

    drawn.batch = batch = probe.largest(order.batch, _at(drawn, first_step))
    measured: List[Measured] = []
    hooks = _hooks(task, loop, measured, batch)._replace(enough=task.go.is_set)
    times = steptime.measure(loop.step, order.protocol, hooks)
    _unless_stopped(task, times)
    ((window, speed),) = measured
    with SpeedMeter() as beside:
        parameters = int(replica.weights.size)
        gradients_at = _at(drawn, lambda: step.step(replica, drawn, spec.slowdown, SETTINGS).gradient_s)
        others = batch_curve.measure(gradients_at, batch, lambda: not task.go.is_set(), probe.measure)
        gradients_at(batch)()  # for what is timed with a gradient at hand: one without enough memory has left none
        ready = _ready(replica, drawn)
        group_cpu_s = _group_cpu_s(framework(spec.framework), replica, drawn, times.gradient_s, probe)
        timer = cold_caches.ColdTimer(cold_caches.as_steps_leave(gradients_at(batch)))
        service_s = (
            update_costs.own_service_s(replica) if optimizer == OWN else update_costs.service_s(parameters, timer)
        )
        by_cpu = replica.accelerator == "cpu"
        wait_cpu_s = cold_gradients.after_wait_s(gradients_at(batch)) if by_cpu else 0.0
        between_s = between_steps.measure(replica, drawn, test, optimizer, loop.between_s)
        messages = OwnMessages()
        if order.ends:
            messages = own_messages.measure(order.ends, gradients_at(batch), parameters * 4, by_cpu)
        half_s = [other.gradient_s for other in others if other.batch == batch // 2]
        return StepProfile(
            model=spec.model,
            fingerprint=_fingerprint(spec),
            framework=spec.framework,
            framework_version=framework(spec.framework).version(),
            accelerator=replica.accelerator,
            threads=built.threads,
            slowdown=spec.slowdown,
            batch=batch,
            micro_batch=spec.micro_batch,
            precision=spec.precision,
            protocol=order.protocol,
            build_s=built.build_s,
            gradient_s=times.gradient_s,
            copy_s=times.copy_s,
            update_s=times.update_s,
            half_batch_s=half_s[0] if half_s else Samples("s", ()),
            service_s=service_s,
            steady=times.steady,
            precise=times.precise,
            cpu_s_per_step=loop.cpu_s_per_step,
            parameters=parameters,
            parameter_bytes=parameters * 4,
            gradient_bytes=parameters * 4,
            state_bytes=int(replica.state.size) * 4,
            window=window,
            layers=tuple(variable.size for variable in replica.variables),
            ready=ready,
            group_cpu_s=group_cpu_s,
            compressors=codec_profile.costs(replica.variables, timer),
            collectives=framework(spec.framework).collectives(),
            job=spec.job is not None,
            samples=found.samples,
            own_optimizer=optimizer == OWN,
            data_s=loop.data_s,
            other_batches=tuple(other for other in others if other.batch != batch // 2),
            memory=probe.found(),
            clip_s=update_costs.clip_s(replica, spec.slowdown),
            optimizers=update_costs.of_others(replica, spec.slowdown, timer, optimizer),
            requested_batch=None if batch == order.batch else order.batch,
            speed=speed,
            first_step_s=max(0.0, first_steps_s[0] - first_steps_s[1]),
            evaluation_s=evaluation_s(replica, test, min(test.most_at_once, spec.micro_batch or batch)),
            between_s=between_s,
            messages=messages.costs,
            wait_cpu_s=wait_cpu_s,
            message_cpu_s=messages.gradient_cpu_s,
            parts_speed=beside.so_far(),
        )


def repeat_steps(task: Any, order: RepeatSteps) -> Repeat:
    """Time a model again that was measured before, for a short while; emits progress.

    Raises ValueError as ``time_steps`` does.
    """
    spec = order.replica
    with code_of(spec):
        found = workload(spec)
        built = found.build()
        train, _ = _data(found, built.replica, order.batch)
        drawn = batches(train, order.batch, spec.seed, micro_batch=spec.micro_batch)
        loop = StepLoop(built.replica, drawn, spec.slowdown, _optimizer(built))
        measured: List[Measured] = []
        times = steptime.measure_repeat(loop.step, _hooks(task, loop, measured))
    _unless_stopped(task, times)
    ((_, speed),) = measured
    return Repeat(times.gradient_s, times.copy_s, times.update_s, loop.cpu_s_per_step, speed)


def _hooks(task: Any, loop: StepLoop, measured: List[Measured], batch: int = 0) -> steptime.Hooks:
    """Those of a measurement, whose window adds to ``measured``. batch: as of ``_progress``."""
    beside = BesideSteps()

    def begin_window() -> None:
        beside.start()
        loop.restart()

    return steptime.Hooks(
        _progress(task, batch), begin_window, lambda: measured.append(beside.stop()), task.stopping.is_set
    )


def _ready(replica: Replica, batches: BatchSource) -> Tuple[float, ...]:
    """``StepProfile.ready``, the median of several gradients."""
    drawn = [next(batches) for _ in range(READY_GRADIENTS)]
    shares = [replica.ready_shares(_gradient(replica, each)) for each in drawn]
    known = [each for each in shares if each is not None]
    return tuple(np.median(known, axis=0).tolist()) if known else ()


def _group_cpu_s(
    backend: Any, replica: Replica, batches: BatchSource, gradient_s: Samples, probe: MemoryProbe
) -> Optional[float]:
    """``StepProfile.group_cpu_s``; unknown where it would take long, or too much memory."""
    quick = stats.mean(gradient_s.values) <= LONGEST_GRADIENT_S
    if not (quick and backend.collectives() and probe.leaves_room_for(GROUP_ARRAYS * replica.weights.nbytes)):
        return None

    def draw() -> Callable[[step.ComputePart], Any]:
        return functools.partial(step.combine_parts, replica, next(batches), SETTINGS)

    found: Optional[float] = backend.group_cpu_s(replica, draw)
    return found


def _gradient(replica: Replica, batch: Any) -> Callable[[], Any]:
    return functools.partial(step.gradient, replica, batch, SETTINGS)


def _data(found: Workload, replica: Replica, batch: int) -> Tuple[Any, EvaluationSet]:
    """The job's own training and test data, or noise, which takes a known model as long."""
    if found.brought is not None:
        return found.brought.train, found.brought.test
    count = batch * SYNTHETIC_BATCHES
    images = dataset.synthetic(replica.input_shape, replica.classes, count, found.spec.seed)
    return ArraySamples(images.train_images, images.train_labels), ArraySamples(images.test_images, images.test_labels)


def _optimizer(built: BuiltReplica) -> str:
    """The job's own optimizer, where it brings one: it updates a device alone."""
    return SGD if built.job.optimizer is None else OWN


def _fingerprint(spec: ReplicaSpec) -> str:
    """That of the model; of a job the operator knows it."""
    if spec.job is not None:
        return ""
    is_users = models.is_user_model(spec.model)
    return models.fingerprint(spec.model if is_users else models.model(spec.model, spec.input_shape, spec.classes))


def _unless_stopped(task: Any, times: steptime.StepTimes) -> None:
    if task.stopping.is_set():
        raise InterruptedError("stopped after %d steps" % len(times.gradient_s.values))


def _progress(task: Any, batch: int = 0) -> Callable[[steptime.StepProgress], None]:
    """Emits progress. batch: the planned one, whose other sizes are timed later; 0 for none."""

    def emit(at: steptime.StepProgress) -> None:
        later = batch_curve.remaining_steps(batch, not task.go.is_set()) if batch else 0.0
        rest_s = at.step_s * (later + _steps_left(at))
        task.emit(StepTimed(at.stage, at.steps, at.step_s, rest_s, min(at.precision, 1.0)))

    return emit


def _steps_left(at: steptime.StepProgress) -> int:
    """The fewest steps still to come at the planned batch size, later repeats included."""
    timed = at.steps if at.stage == "timed" else 0
    later = steptime.REPEAT_WARMUP + steptime.REPEAT_MINIMUM
    return max(0, steptime.TIMED_MINIMUM - timed) + later


def _at(batches: BatchSource, make: Callable[[], Made]) -> Callable[[int], Callable[[], Made]]:
    """Gives a function that makes a step at a batch size."""

    def at(size: int) -> Callable[[], Made]:
        batches.batch = size
        return make

    return at
