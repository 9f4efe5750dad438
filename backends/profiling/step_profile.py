"""Pre-training times one step of a model on this device and samples its counters.

Source: Gu et al., steps 1 and 2.
"""

import time
from contextlib import closing
from typing import Any, Callable, List, Tuple, TypeVar

from backends import models
from backends.data import dataset
from backends.data.loader import ArraySamples, BatchSource, EvaluationSet
from backends.frameworks.base import Replica, framework
from backends.frameworks.optimizer import OWN, SGD
from backends.profiling import alternatives, batch_curve, nothing_fits, step_parts
from backends.profiling.evaluation_speed import evaluation_s
from backends.profiling.step_loop import SETTINGS, StepLoop
from backends.profiling.step_memory import MemoryProbe
from backends.protocol.events import StepTimed
from backends.protocol.member_specs import ReplicaSpec
from backends.protocol.orders import RepeatSteps, TimeSteps
from backends.strategies.engine import TORCH
from backends.training import step
from backends.training.compute_clock import clock_of
from backends.training.step_watch import StepWatch, limited
from backends.training.workload import BuiltReplica, Workload, batches, code_of, workload
from profilers import device_facts, stats, steptime
from profilers.file_tree import FileTree
from profilers.records.readings import Window
from profilers.records.steps import ModelSize, Repeat, StepProfile, StepSetup
from profilers.sampling import Sampler

SYNTHETIC_BATCHES = 8
#: Shortest window with a power sensor: some of them have a new value a second.
SENSED_S = 4.0
#: Longest gradient with which the double batch size is timed.
LONGEST_FOR_DOUBLE_S = 0.5
#: Seconds that any step may take.
LEAST_S = 60.0
#: Seconds from one word to the next that parts of steps are being timed.
TELL_S = 10.0

Made = TypeVar("Made")


def time_steps(task: Any, order: TimeSteps) -> StepProfile:
    """Measure one model at one batch size; emits progress.

    It waits for the word to go on once the model is built and its memory is known.
    Where that batch size does not fit into the memory, a smaller one is measured.
    Raises ValueError for what does not fit together, and where no batch size fits.
    """
    spec = order.replica
    with code_of(spec):
        found = workload(spec)
        built = _built(found)
        train, test = _data(found, built.replica, order.batch)
        drawn = batches(train, order.batch, spec.seed, micro_batch=spec.compute.micro_batch)
        with closing(drawn), closing(test), _watched(built):
            return _timed(task, order, found, built, drawn, test)


def _built(found: Workload) -> BuiltReplica:
    with limited("building the model"):
        return found.build()


def _watched(built: BuiltReplica) -> StepWatch:
    """Ends the agent where a step or an evaluation hangs."""
    return StepWatch(clock_of(built.replica), LEAST_S)


def _timed(
    task: Any, order: TimeSteps, found: Workload, built: BuiltReplica, drawn: BatchSource, test: EvaluationSet
) -> StepProfile:
    spec = order.replica
    replica = built.replica
    loop = StepLoop(replica, drawn, _optimizer(built))
    backend = framework(spec.framework)
    probe = MemoryProbe.of_this_process(backend)
    size = _size(replica)
    nothing_fits.require_room(size, loop.optimizer, probe)
    first_steps_s: List[float] = []

    def first_step() -> None:
        first_steps_s.append(sum(loop.step()))

    try:
        drawn.batch = batch = probe.largest(order.batch, _at(drawn, first_step))
    except MemoryError as error:
        again = MemoryProbe.of_this_process(backend)
        is_checkpointed = spec.compute.activation_checkpointing
        raise nothing_fits.with_remedy(error, replica, is_checkpointed, _at(drawn, first_step), again) from error
    task.emit(StepTimed("ready", len(first_steps_s), 0.0))
    task.await_go()
    windows: List[Window] = []
    sampler = Sampler()
    window_s = SENSED_S if sampler.reads_power else steptime.WINDOW_S
    times = steptime.measure(loop.step, order.protocol, _hooks(task, loop, sampler, windows), window_s)
    _unless_stopped(task, times)
    gradient = _telling(task, lambda: step.step(replica, drawn, SETTINGS).gradient_s)
    with_larger = stats.median(times.gradient_s.values) <= LONGEST_FOR_DOUBLE_S
    others = batch_curve.measure(_at(drawn, gradient), batch, with_larger, probe.measure)
    drawn.batch = batch
    costs = step_parts.measure(loop, gradient, backend, probe, order.ends)
    evaluated_s = evaluation_s(replica, test, min(test.most_at_once, spec.compute.micro_batch or batch))
    memory = probe.found()
    if spec.framework == TORCH and probe.is_scarce_at(order.batch):  # last: the replica goes on in another way
        ways = alternatives.measure(
            replica,
            spec.compute,
            device_facts.precisions(FileTree("/")),
            memory.batches,
            _at(drawn, gradient),
            lambda work: alternatives.InWork(backend.live_bytes(work), probe.resting_bytes()),
        )
        memory = memory._replace(alternatives=ways)
    return StepProfile(
        model=spec.model,
        framework=spec.framework,
        batch=batch,
        setup=StepSetup(
            fingerprint=_fingerprint(spec),
            framework_version=backend.version(),
            accelerator=replica.accelerator,
            threads=built.threads,
            slowdown=spec.slowdown,
            protocol=order.protocol,
            steady=times.steady,
            precise=times.precise,
            compute=spec.compute,
            requested_batch=None if batch == order.batch else order.batch,
            job=spec.job is not None,
            samples=found.samples,
            own_optimizer=loop.optimizer == OWN,
        ),
        size=size,
        gradient_s=times.gradient_s,
        copy_s=times.copy_s,
        update_s=times.update_s,
        cpu_s_per_step=loop.cpu_s_per_step,
        data_s=loop.data_s,
        window=windows[0],
        costs=costs._replace(
            build_s=built.build_s,
            first_step_s=max(0.0, first_steps_s[0] - first_steps_s[1]),
            evaluation_s=evaluated_s,
        ),
        other_batches=others,
        memory=memory,
    )


def repeat_steps(task: Any, order: RepeatSteps) -> Repeat:
    """Time a model again that was measured before, for some seconds; emits progress.

    It may first make steps that do not count until it is told to go on.

    Raises ValueError as ``time_steps`` does.
    """
    spec = order.replica
    with code_of(spec):
        found = workload(spec)
        built = _built(found)
        train, _ = _data(found, built.replica, order.batch)
        drawn = batches(train, order.batch, spec.seed, micro_batch=spec.compute.micro_batch)
        loop = StepLoop(built.replica, drawn, _optimizer(built))
        hooks = _hooks(task, loop, Sampler(), [])
        begins = task.go.is_set if order.waits else lambda: True
        with closing(drawn), _watched(built):
            times = steptime.measure_repeat(loop.step, order.seconds, hooks, begins)
    _unless_stopped(task, times)
    return Repeat(times.gradient_s, times.copy_s, times.update_s, loop.cpu_s_per_step)


def _size(replica: Replica) -> ModelSize:
    parameters = int(replica.weights.size)
    return ModelSize(
        parameters, parameters * 4, int(replica.changing.size) * 4, tuple(each.size for each in replica.variables),
        *replica.divisible(),
    )  # fmt: skip


def _hooks(task: Any, loop: StepLoop, sampler: Sampler, windows: List[Window]) -> steptime.Hooks:
    """Those of a measurement, which adds its window to ``windows``."""

    def begin_window() -> None:
        sampler.start()
        loop.restart()

    return steptime.Hooks(
        lambda at: task.emit(StepTimed(*at)), begin_window, lambda: windows.append(sampler.stop()), task.stopping.is_set
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


def _telling(task: Any, gradient: Callable[[], float]) -> Callable[[], float]:
    """The same gradient, which tells every now and then that the order goes on."""
    made, told_s = 0, time.monotonic()

    def compute() -> float:
        nonlocal made, told_s
        made += 1
        if time.monotonic() - told_s > TELL_S:
            told_s = time.monotonic()
            task.emit(StepTimed("parts", made, 0.0))
        return gradient()

    return compute


def _at(batches: BatchSource, make: Callable[[], Made]) -> Callable[[int], Callable[[], Made]]:
    """Gives a function that makes a step at a batch size."""

    def at(size: int) -> Callable[[], Made]:
        batches.batch = size
        return make

    return at
