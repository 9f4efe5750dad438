"""Pre-training (Gu et al., steps 1 and 2): what one step of a model takes on this device, and with which counters."""

import time
from typing import Any, Callable, NamedTuple, Optional, Tuple

import numpy as np

from backends import central, coding, data, models, worker
from backends.base import Optimiser, Replica, framework, usable_threads
from backends.layout import Layout
from backends.strategies import message
from profilers import cores, records, steptime
from profilers.sampling import Sampler

#: Small enough that nothing overflows on noise; the time of a step does not depend on it.
RATE = 1e-4
MOMENTUM = 0.9
HALF_BATCH_STEPS = 20
HALF_BATCH_WARMUP = 3
SERVICE_REPEATS = 20
SERVICE_LIMIT_S = 1.0
SYNTHETIC_BATCHES = 8


class Built(NamedTuple):
    """A replica, how long it took to build (T^B, framework import apart), and the threads it computes on."""

    replica: Any
    build_s: float
    threads: int


def build(framework_name, model, input_shape, classes, seed, slowdown):
    # type: (str, str, Optional[Tuple[int, ...]], Optional[int], int, float) -> Built
    """Build a replica and time it. An emulated device computes on one thread, and builds as slowly as it steps."""
    backend = framework(framework_name)
    backend.accelerator()  # initialises the GPU, which is not part of building a model
    threads = usable_threads(cores.usable_cores(), 1 if slowdown > 1.0 else None)
    began = time.perf_counter()
    replica = backend.build(model, input_shape, classes, seed, threads)
    worker.stretch(time.perf_counter() - began, slowdown)
    return Built(replica, time.perf_counter() - began, threads)


def steps(job, model, framework_name, batch, protocol, seed=0, slowdown=1.0, input_shape=None, classes=None):
    # type: (Any, str, str, int, str, int, float, Any, Any) -> records.StepProfile
    """Measure one model at one batch size; emits progress. Told to go on, it soon ends. Raises ValueError for what
    does not fit together."""
    built = build(framework_name, model, input_shape, classes, seed, slowdown)
    replica = built.replica
    images = data.synthetic(replica.input_shape, replica.classes, batch * SYNTHETIC_BATCHES, seed)
    batches = data.Batches(images.train_images, images.train_labels, batch, seed)
    watch = _Watch()
    times = steptime.measure(_step(replica, batches, slowdown, watch), protocol, watch.hooks(job))
    if job.stopping.is_set():
        raise InterruptedError("stopped after %d steps" % len(times.gradient_s.values))
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
        cpu_s_per_step=watch.cpu_s / max(1, watch.steps),
        parameters=parameters,
        parameter_bytes=parameters * 4,
        gradient_bytes=parameters * 4,
        state_bytes=int(replica.state.size) * 4,
        window=watch.window,
        layers=tuple(variable.size for variable in replica.variables),
        senders=coding.costs(replica.variables),
    )


class _Watch:
    """Samples counters and sensors while the window is open; counts steps, and processor time of gradients."""

    def __init__(self):
        # type: () -> None
        self._sampler = Sampler()
        self.window = records.Window(0.0, {}, ())
        self.cpu_s = 0.0
        self.steps = 0

    def hooks(self, job):
        # type: (Any) -> steptime.Hooks
        def progress(at):
            # type: (steptime.Progress) -> None
            self.steps = at.steps
            job.emit({
                "stage": at.stage,
                "steps": at.steps,
                "step_s": at.step_s,
                "rest_s": at.step_s * _steps_left(at),
                "precision": min(at.precision, 1.0),
            })

        return steptime.Hooks(progress, self._open, self._close, job.stopping.is_set, job.go.is_set)

    def _open(self):
        # type: () -> None
        self.cpu_s = 0.0
        self._sampler.start()

    def _close(self):
        # type: () -> None
        self.window = self._sampler.stop()


def _steps_left(at):
    # type: (steptime.Progress) -> float
    """Steps that are still to come at the least; those of half the batch size count half."""
    timed = at.steps if at.stage == "timed" else 0
    return max(0, steptime.TIMED_MINIMUM - timed) + (HALF_BATCH_WARMUP + HALF_BATCH_STEPS) / 2.0


def _step(replica, batches, slowdown, watch):
    # type: (Replica, worker.Batches, float, _Watch) -> Callable[[], steptime.Phases]
    """A step that does all that either kind of cluster needs, each phase timed by itself."""

    def step():
        # type: () -> steptime.Phases
        cpu = time.process_time()
        _, gradient_s, fetch_s = worker.step(replica, batches, slowdown, RATE)
        watch.cpu_s += time.process_time() - cpu
        began = time.perf_counter()
        replica.update(MOMENTUM)
        worker.stretch(time.perf_counter() - began, slowdown)
        updated = time.perf_counter()
        replica.load()  # last: after an update of its own a replica would fetch its weights, which no worker does
        return gradient_s, fetch_s + time.perf_counter() - updated, updated - began

    return step


def _half_batch(replica, images, batch, seed, slowdown):
    # type: (Replica, data.Dataset, int, int, float) -> records.Samples
    """Gradient times at half the batch size: the second point of the line through other batch sizes."""
    if batch < 4:  # half of less may be a single image, of which batch normalisation cannot learn
        return records.Samples("s", ())
    batches = data.Batches(images.train_images, images.train_labels, batch // 2, seed)
    times = [worker.step(replica, batches, slowdown, RATE)[1] for _ in range(HALF_BATCH_WARMUP + HALF_BATCH_STEPS)]
    return records.Samples("s", tuple(times[HALF_BATCH_WARMUP:]), tuple(times[:HALF_BATCH_WARMUP]))


def service(parameters):
    # type: (int) -> records.Samples
    """Seconds of one update by the parameter server, on this device's CPU, for a model of that many parameters."""
    weights, velocity, values = (np.full(parameters, 1e-6, np.float32) for _ in range(3))
    gradient = message.dense(values)
    server = central.Central(Layout((), ()), weights, velocity, np.empty(0, np.float32))
    times = []
    began = time.perf_counter()
    while len(times) < 3 or (len(times) < SERVICE_REPEATS and time.perf_counter() - began < SERVICE_LIMIT_S):
        start = time.perf_counter()
        server.accepts(gradient)
        server.update([gradient], [1.0], Optimiser(momentum=MOMENTUM))
        times.append(time.perf_counter() - start)
    return records.Samples("s", tuple(times[1:]), tuple(times[:1]))
