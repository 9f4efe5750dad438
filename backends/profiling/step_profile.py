"""Pre-training times one step of a model on this device and samples its counters.

Source: Gu et al., steps 1 and 2.
"""

import time
from typing import Any, Callable, List, Tuple, TypeVar

from backends import models
from backends.data import dataset
from backends.data.loader import ArraySamples, BatchSource, EvaluationSet
from backends.frameworks.base import OWN, SGD, Replica, framework
from backends.profiling import batch_curve, step_parts
from backends.profiling.beside_steps import BesideSteps
from backends.profiling.evaluation_speed import evaluation_s
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
#: Seconds from one word to the next that parts of steps are being timed.
TELL_S = 10.0

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
    replica = built.replica
    train, test = _data(found, replica, order.batch)
    drawn = batches(train, order.batch, spec.seed, micro_batch=spec.micro_batch)
    loop = StepLoop(replica, drawn, _optimizer(built))
    backend = framework(spec.framework)
    probe = MemoryProbe.of_this_process(backend)
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
        gradient = _telling(task, times, lambda: step.step(replica, drawn, SETTINGS).gradient_s)
        others = batch_curve.measure(_at(drawn, gradient), batch, lambda: not task.go.is_set(), probe.measure)
        drawn.batch = batch
        parts = step_parts.measure(loop, gradient, test, backend, probe, order.ends)
        evaluated_s = evaluation_s(replica, test, min(test.most_at_once, spec.micro_batch or batch))
        parts_speed = beside.so_far()
    half_s = [other.gradient_s for other in others if other.batch == batch // 2]
    parameters = int(replica.weights.size)
    return StepProfile(
        model=spec.model,
        fingerprint=_fingerprint(spec),
        framework=spec.framework,
        framework_version=backend.version(),
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
        steady=times.steady,
        precise=times.precise,
        cpu_s_per_step=loop.cpu_s_per_step,
        parameters=parameters,
        parameter_bytes=parameters * 4,
        gradient_bytes=parameters * 4,
        state_bytes=int(replica.state.size) * 4,
        window=window,
        layers=tuple(variable.size for variable in replica.variables),
        collectives=backend.collectives(),
        job=spec.job is not None,
        samples=found.samples,
        own_optimizer=loop.optimizer == OWN,
        data_s=loop.data_s,
        other_batches=tuple(other for other in others if other.batch != batch // 2),
        memory=probe.found(),
        requested_batch=None if batch == order.batch else order.batch,
        speed=speed,
        first_step_s=max(0.0, first_steps_s[0] - first_steps_s[1]),
        evaluation_s=evaluated_s,
        parts_speed=parts_speed,
        **parts._asdict(),
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
        loop = StepLoop(built.replica, drawn, _optimizer(built))
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


def _telling(task: Any, times: steptime.StepTimes, gradient: Callable[[], float]) -> Callable[[], float]:
    """The same gradient, which tells every now and then that the order goes on."""
    step_s = sum(stats.median(phase.values) for phase in (times.gradient_s, times.copy_s, times.update_s))
    precision = min(1.0, stats.relative_interval95(times.gradient_s.values))
    made, told_s = 0, time.monotonic()

    def compute() -> float:
        nonlocal made, told_s
        made += 1
        if time.monotonic() - told_s > TELL_S:
            told_s = time.monotonic()
            task.emit(StepTimed("parts", made, step_s, 0.0, precision))
        return gradient()

    return compute


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
