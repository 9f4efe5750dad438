"""Pre-training (Gu et al., steps 1 and 2): what one step of a model takes on this device, and with which counters."""

import time
from typing import Any, Callable, NamedTuple, Optional, Tuple

import numpy as np

from backends import models
from backends.data import dataset
from backends.frameworks.base import OptimizerSettings, Replica, framework, usable_threads
from backends.profiling import codec_profile
from backends.server import global_model
from backends.strategies import message
from backends.training import step
from backends.training.layout import Layout
from profilers import cores, records, steptime
from profilers.sampling import Sampler

#: Small enough that nothing overflows on noise; the time of a step does not depend on it.
RATE = 1e-4
MOMENTUM = 0.9
HALF_BATCH_STEPS = 12
HALF_BATCH_WARMUP = 3
SERVICE_REPEATS = 20
SERVICE_LIMIT_S = 1.0
SYNTHETIC_BATCHES = 8


class Built(NamedTuple):
    """A replica, how long it took to build (T^B, framework import apart), and the threads it computes on."""

    replica: Any
    build_s: float
    threads: int


def build(
    framework_name: str,
    model: str,
    input_shape: Optional[Tuple[int, ...]],
    classes: Optional[int],
    seed: int,
    slowdown: float,
) -> Built:
    """Build a replica and time it. An emulated device computes on one thread, and builds as slowly as it steps."""
    backend = framework(framework_name)
    backend.accelerator()  # initialises the GPU, which is not part of building a model
    threads = usable_threads(cores.usable_cores(), 1 if slowdown > 1.0 else None)
    began = time.perf_counter()
    replica = backend.build(model, input_shape, classes, seed, threads)
    step.stretch(time.perf_counter() - began, slowdown)
    return Built(replica, time.perf_counter() - began, threads)


def steps(
    job: Any,
    model: str,
    framework_name: str,
    batch: int,
    protocol: str,
    seed: int = 0,
    slowdown: float = 1.0,
    input_shape: Any = None,
    classes: Any = None,
) -> records.StepProfile:
    """Measure one model at one batch size; emits progress. Told to go on, it soon ends. Raises ValueError for what
    does not fit together."""
    built = build(framework_name, model, input_shape, classes, seed, slowdown)
    replica = built.replica
    images = _images(replica, batch, seed)
    loop = _Loop(replica, _batches(images, batch, seed), slowdown)
    window = _Window(loop)
    times = steptime.measure(loop.step, protocol, window.hooks(job))
    _unless_stopped(job, times)
    description = model if models.is_user_model(model) else models.model(model, input_shape, classes)
    parameters = int(replica.weights.size)
    return records.StepProfile(
        model=model,
        fingerprint=models.fingerprint(description),
        framework=framework_name,
        framework_version=framework(framework_name).version(),
        accelerator=replica.accelerator,
        threads=built.threads,
        slowdown=slowdown,
        batch=batch,
        protocol=protocol,
        build_s=built.build_s,
        gradient_s=times.gradient_s,
        copy_s=times.copy_s,
        update_s=times.update_s,
        half_batch_s=_half_batch(replica, images, batch, seed, slowdown),
        service_s=service(parameters),
        steady=times.steady,
        precise=times.precise,
        cpu_s_per_step=loop.cpu_s_per_step,
        parameters=parameters,
        parameter_bytes=parameters * 4,
        gradient_bytes=parameters * 4,
        state_bytes=int(replica.state.size) * 4,
        window=window.window,
        layers=tuple(variable.size for variable in replica.variables),
        senders=codec_profile.costs(replica.variables),
    )


def again(
    job: Any,
    model: str,
    framework_name: str,
    batch: int,
    seed: int = 0,
    slowdown: float = 1.0,
    input_shape: Any = None,
    classes: Any = None,
) -> records.Repeat:
    """Time a model again that was measured before, for a short while; tells how far. Raises ValueError as ``steps``."""
    replica = build(framework_name, model, input_shape, classes, seed, slowdown).replica
    loop = _Loop(replica, _batches(_images(replica, batch, seed), batch, seed), slowdown)
    times = steptime.again(loop.step, steptime.Hooks(_progress(job), loop.restart, should_stop=job.stopping.is_set))
    _unless_stopped(job, times)
    return records.Repeat(times.gradient_s, times.copy_s, times.update_s, loop.cpu_s_per_step)


def _images(replica: Replica, batch: int, seed: int) -> dataset.Dataset:
    return dataset.synthetic(replica.input_shape, replica.classes, batch * SYNTHETIC_BATCHES, seed)


def _batches(images: dataset.Dataset, batch: int, seed: int) -> dataset.BatchLoader:
    return dataset.BatchLoader(images.train_images, images.train_labels, batch, seed)


def _unless_stopped(job: Any, times: steptime.StepTimes) -> None:
    if job.stopping.is_set():
        raise InterruptedError("stopped after %d steps" % len(times.gradient_s.values))


class _Loop:
    """Steps that do all that either kind of cluster needs, each phase timed by itself.

    What passes between two of them is part of the second one's gradient: a device whose processor time is rationed
    pauses there more often than while it computes, and training, too, has something to do there.
    """

    def __init__(self, replica: Replica, batches: dataset.BatchLoader, slowdown: float) -> None:
        self._replica = replica
        self._batches = batches
        self._slowdown = slowdown
        self.restart()

    def restart(self) -> None:
        """Count from here."""
        self._ended_s: Optional[float] = None
        self._steps = 0
        self._cpu_s = 0.0

    @property
    def cpu_s_per_step(self) -> float:
        """Processor seconds of a gradient."""
        return self._cpu_s / max(1, self._steps)

    def step(self) -> steptime.Phases:
        """One more."""
        began_s = time.perf_counter() if self._ended_s is None else self._ended_s
        cpu_s = time.process_time()
        _, _, fetch_s = step.step(self._replica, self._batches, self._slowdown, RATE)
        self._cpu_s += time.process_time() - cpu_s
        self._steps += 1
        fetched_s = time.perf_counter()
        self._replica.update(MOMENTUM)
        step.stretch(time.perf_counter() - fetched_s, self._slowdown)
        updated_s = time.perf_counter()
        self._replica.load()  # last: after an update of its own a replica would fetch its weights, which no worker does
        self._ended_s = time.perf_counter()
        return fetched_s - fetch_s - began_s, fetch_s + self._ended_s - updated_s, updated_s - fetched_s


class _Window:
    """Samples counters and sensors while it is open."""

    def __init__(self, loop: _Loop) -> None:
        self._loop = loop
        self._sampler = Sampler()
        self.window = records.Window(0.0, {}, ())

    def hooks(self, job: Any) -> steptime.Hooks:
        return steptime.Hooks(_progress(job), self._open, self._close, job.stopping.is_set, job.go.is_set)

    def _open(self) -> None:
        self._sampler.start()
        self._loop.restart()

    def _close(self) -> None:
        self.window = self._sampler.stop()


def _progress(job: Any) -> Callable[[steptime.StepProgress], None]:
    def tell(at: steptime.StepProgress) -> None:
        job.emit(
            {
                "stage": at.stage,
                "steps": at.steps,
                "step_s": at.step_s,
                "rest_s": at.step_s * _steps_left(at),
                "precision": min(at.precision, 1.0),
            }
        )

    return tell


def _steps_left(at: steptime.StepProgress) -> float:
    """Steps to come at the least, those of a later visit too; those of half the batch size count half."""
    timed = at.steps if at.stage == "timed" else 0
    later = steptime.AGAIN_WARMUP + steptime.AGAIN_MINIMUM
    return max(0, steptime.TIMED_MINIMUM - timed) + (HALF_BATCH_WARMUP + HALF_BATCH_STEPS) / 2.0 + later


def _half_batch(replica: Replica, images: dataset.Dataset, batch: int, seed: int, slowdown: float) -> records.Samples:
    """Gradient times at half the batch size: the second point of the line through other batch sizes."""
    if batch < 4:  # half of less may be a single image, of which batch normalisation cannot learn
        return records.Samples("s", ())
    batches = _batches(images, batch // 2, seed)
    times = [step.step(replica, batches, slowdown, RATE)[1] for _ in range(HALF_BATCH_WARMUP + HALF_BATCH_STEPS)]
    return records.Samples("s", tuple(times[HALF_BATCH_WARMUP:]), tuple(times[:HALF_BATCH_WARMUP]))


def service(parameters: int) -> records.Samples:
    """Seconds of one update by the parameter server, on this device's CPU, for a model of that many parameters."""
    weights, velocity, values = (np.full(parameters, 1e-6, np.float32) for _ in range(3))
    gradient = message.dense(values)
    server = global_model.GlobalModel(Layout((), ()), weights, velocity, np.empty(0, np.float32))
    times = []
    began = time.perf_counter()
    while len(times) < 3 or (len(times) < SERVICE_REPEATS and time.perf_counter() - began < SERVICE_LIMIT_S):
        start = time.perf_counter()
        server.accepts(gradient)
        server.update([gradient], [1.0], OptimizerSettings(momentum=MOMENTUM))
        times.append(time.perf_counter() - start)
    return records.Samples("s", tuple(times[1:]), tuple(times[:1]))
