"""The workload of a device: the model that it trains, and its batches."""

import contextlib
import time
from typing import Any, Callable, ContextManager, Dict, NamedTuple, Optional, Tuple

from backends.data import dataset
from backends.data.background import BackgroundLoader
from backends.data.folder_content import require_folder
from backends.data.loader import ArraySamples, BatchLoader, BatchSource, EvaluationSet, SampleSet
from backends.data.micro_batches import in_parts
from backends.data.partition import counted, own_samples
from backends.data.sample_order import stretch
from backends.frameworks.base import Replica, framework, usable_threads
from backends.jobs import user_job
from backends.jobs.failure import JobFailure, own_code, refusal
from backends.jobs.job import ACCURACY, Job, LoadedJob
from backends.jobs.metric_names import HIGHER
from backends.network import sample_frames
from backends.protocol.member_specs import IID, DataPart, InjectionOrder, MemberSpec, ReplicaSpec, StreamOrder
from backends.strategies.data_injection import InjectionSpec
from backends.streams.injection import InjectedBatches, SampleInjection, codec_of
from backends.streams.segments import SegmentFolder
from backends.streams.stream_batches import stream_batches
from backends.training.compute_clock import ComputeClock, clock_of
from backends.training.step_watch import limited
from profilers import cpu_quota
from profilers.mixed_precision import FP32

#: Training batches, and what the model is evaluated on.
MemberData = Tuple[BatchSource, EvaluationSet]
#: The data of a member that shares them with nobody.
ALL = DataPart((1.0,), 0, 0)


class BuiltReplica(NamedTuple):
    """A replica that was built and timed.

    job: what it computes
    build_s: T^B, without the import of the framework
    threads: those that it computes on
    """

    replica: Replica
    job: Job
    build_s: float
    threads: int


class Workload(NamedTuple):
    """A job, and the data that it brings.

    make_job: makes a known model; a user's is there already, because it was tried.
    brought: a user's job with its data; None for known models, whose images are shipped.
    """

    spec: ReplicaSpec
    make_job: Callable[[], Job]
    brought: Optional[LoadedJob] = None

    def build(self) -> BuiltReplica:
        """Build the replica and time it; a slowed device builds as slowly as it steps.

        Raises ValueError for a precision that the framework does not compute in here, and where the
        model has no blocks whose activations need not be kept.
        """
        spec, backend = self.spec, framework(self.spec.framework)
        backend.accelerator()  # initialises the GPU, which is not part of building a model
        began = time.perf_counter()
        with ComputeClock(slowdown=spec.slowdown):
            job = self.make_job()
            replica = backend.sharded_replica(job) if spec.is_sharded else backend.replica(job)
            if spec.compute.precision != FP32:
                replica.compute_in(spec.compute.precision)
            if spec.compute.activation_checkpointing:
                replica.checkpoint_activations()
        clock_of(replica).slowdown = spec.slowdown
        return BuiltReplica(replica, job, time.perf_counter() - began, _threads(spec))

    @property
    def samples(self) -> Optional[int]:
        """Training samples of the job, where it brings them and their number is known."""
        if self.brought is None:
            return None
        known: Optional[int] = self.brought.train.count()
        return known

    @property
    def metrics(self) -> Dict[str, str]:
        """As in ``Ready``."""
        if self.brought is None:
            return {ACCURACY: HIGHER}
        return {name: metric.direction for name, metric in self.brought.job.metrics.items()}


def workload(spec: ReplicaSpec) -> Workload:
    """The workload of a spec. A user's job is loaded, which calls the user's function.

    Raises JobFailure for a job of the wrong form, and for an error in the user's code; ValueError
    for a missing folder of its data.
    """
    user, backend, threads = spec.job, framework(spec.framework), _threads(spec)
    if user is None:
        known = (spec.model, spec.input_shape, spec.classes, spec.seed, threads)
        return Workload(spec, lambda: backend.known_job(*known))
    if user.data is not None:
        require_folder(user.data)
    try:
        with code_of(spec), limited("the job's function %s" % user.text):
            brought = backend.load_job(lambda: user_job.checked(user_job.call(user)), spec.seed, threads)
    except ValueError as error:
        raise refusal(error) from error
    return Workload(spec, lambda: brought.job, brought)


def code_of(spec: ReplicaSpec) -> ContextManager[Any]:
    """Raise JobFailure for errors in the code of the spec's job, if it has one."""
    return contextlib.ExitStack() if spec.job is None else own_code(spec.job.folder, spec.job.text)


class OwnData(NamedTuple):
    """A member's data, and what is known of its training samples.

    labels: samples by label, where the partition or the images have some.
    division: as in ``Ready``.
    """

    data: MemberData
    labels: Dict[str, int] = {}
    division: str = ""


def batches(train: Any, batch: int, seed: int, micro_batch: int = 0, part: DataPart = ALL) -> BatchSource:
    """Batches of training samples, read ahead where that pays.

    train: a ``data.loader.SampleSet`` or a ``data.streams.SampleStream``.
    micro_batch: as in ComputeSettings.
    part: of a stream; a set is that of one member already.
    """
    if isinstance(train, SampleSet):
        return BackgroundLoader(in_parts(train.loader(batch, seed), micro_batch))
    return BackgroundLoader(in_parts(train.loader(batch, part.weights, part.member), micro_batch))


def member_data(
    member: MemberSpec, found: Workload, read: Callable[[str], bytes], place: Callable[[str], str]
) -> OwnData:
    """A member's batches, and the test set, evaluated in batches no larger than those of a step.

    read: gives the content of a file on this device, as images are shipped.
    place: the path in the cache of the device for a name.
    Raises JobFailure for a partition by label of data whose labels cannot be read, or that leaves a
    member no sample.
    """
    labels, division, part = {}, "", member.part or ALL
    if found.brought is None:
        train, test = _shipped(member, read)
        labels = counted(train.labels())
    else:
        train, test = found.brought.train, found.brought.test
        if train.in_lanes:
            _require_order(member, train, part)
        if len(part.weights) > 1 or part.partition != IID:
            train, labels, division = _own_part(train, part)
    most = member.replica.compute.micro_batch
    test.most_at_once = min(test.most_at_once, most or member.batch)
    if member.injection is not None:
        drawn = in_parts(_injected(member, member.injection, train, place), most)
    elif member.stream is None:
        drawn = batches(train, member.batch, member.seed, most, part)
    else:
        drawn = in_parts(_arriving(member, member.stream, train, place), most)
    return OwnData((drawn, test), labels, division)


def _arriving(member: MemberSpec, order: StreamOrder, train: Any, place: Callable[[str], str]) -> BatchSource:
    """The batches of a member's stream."""
    return stream_batches(order, member.name, train, member.replica.classes, member.batch, place(order.folder))


def _injected(member: MemberSpec, order: InjectionOrder, train: Any, place: Callable[[str], str]) -> BatchSource:
    """Batches that take in samples of other members. They are not read ahead.

    Raises JobFailure where samples like those of the job cannot be given to others.
    """
    try:
        codec = codec_of(train, member.replica.classes)
        sample_frames.require_room(codec.sample_bytes)
    except ValueError as error:
        raise JobFailure("--inject %s: %s; leave --inject out" % (order.text, error)) from error
    spec = InjectionSpec.from_text(order.text)
    set_aside = SegmentFolder(place(order.folder)).set_aside
    injection = SampleInjection(codec, member.batch, spec.beta, order.seed, set_aside)
    if member.stream is None:
        return InjectedBatches(BatchLoader(train, member.batch, member.seed), injection)
    return InjectedBatches(_arriving(member, member.stream, train, place), injection)


def _require_order(member: MemberSpec, train: Any, part: DataPart) -> None:
    """Raises JobFailure where samples that follow one another would be torn apart."""
    stream, injection = member.stream, member.injection
    for option, text in (
        ("partition", part.partition if part.partition != IID else None),
        ("stream", stream.text if stream is not None else None),
        ("inject", injection.text if injection is not None else None),
    ):
        if text is not None:
            raise JobFailure("--%s %s: a job with a state needs its samples in order; leave it out" % (option, text))
    if len(part.weights) == 1:
        return
    if train.count() is None:
        raise JobFailure(
            "a job with a state needs training samples that can be divided into stretches, and the number of its own "
            "is not known; give data with a length, or train on one device"
        )
    own = len(stretch(train.count(), part.weights, part.member))
    if own < member.batch:
        raise JobFailure(
            "a job with a state has stretches of samples, and that of %s has %d for a batch of %d; take a smaller "
            "--batch-size, fewer devices or more data" % (member.name, own, member.batch)
        )


def _own_part(train: Any, part: DataPart) -> Tuple[Any, Dict[str, int], str]:
    """A member's part of a set, its labels, and the division; a stream is divided later."""
    by_label = part.partition != IID
    if not isinstance(train, SampleSet):
        if by_label:
            raise _cannot_divide(part, "its train is read in order, and not by position; give a Dataset with a length")
        return train, {}, ""
    if train.in_lanes:
        return train.part(stretch(len(train), part.weights, part.member)), {}, ""
    try:
        own = own_samples(part, len(train), train.labels)
        chosen = train.part(own.positions)
        return chosen, counted(chosen.labels()) if by_label else {}, own.digest
    except ValueError as error:
        raise _cannot_divide(part, str(error)) from error


def _cannot_divide(part: DataPart, reason: str) -> JobFailure:
    return JobFailure("--partition %s: %s, or leave --partition out" % (part.partition, reason))


def _shipped(member: MemberSpec, read: Callable[[str], bytes]) -> Tuple[ArraySamples, ArraySamples]:
    """A member's own training images, and the test images of all."""
    train, test = (ArraySamples(*dataset.unpack(read(path))) for path in (member.train, member.test))
    return train, test


def _threads(spec: ReplicaSpec) -> int:
    return usable_threads(cpu_quota.usable_cores(), 1 if spec.slowdown > 1.0 else None)
