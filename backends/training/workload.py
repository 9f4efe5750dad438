"""The workload of a device: the model that it trains, and its batches."""

import time
from typing import Callable, NamedTuple, Optional, Tuple

from backends.data import dataset
from backends.data.background import BackgroundLoader
from backends.data.loader import ArraySamples, BatchLoader, BatchSource, EvaluationSet, PartOfSamples, SampleSet
from backends.data.micro_batches import in_parts
from backends.frameworks.base import Replica, framework, usable_threads
from backends.jobs import user_job
from backends.jobs.failure import own_code
from backends.jobs.job import LoadedJob
from backends.protocol.orders import DataPart, MemberSpec, ReplicaSpec
from backends.training import step
from profilers import cores
from profilers.mixed_precision import FP32

#: Training batches, and what the model is evaluated on.
MemberData = Tuple[BatchSource, EvaluationSet]
#: The data of a member that shares them with nobody.
ALL = DataPart((1.0,), 0, 0)


class BuiltReplica(NamedTuple):
    """A replica that was built and timed.

    build_s: T^B, without the import of the framework
    threads: those that it computes on
    """

    replica: Replica
    build_s: float
    threads: int


class Workload(NamedTuple):
    """A replica that can be built; ``job`` is None for a model that no job brings."""

    spec: ReplicaSpec
    job: Optional[LoadedJob]

    def build(self) -> BuiltReplica:
        """Build the replica and time it; an emulated device builds as slowly as it steps.

        Raises ValueError for a precision that the framework does not compute in here.
        """
        spec, threads = self.spec, _threads(self.spec)
        backend = framework(spec.framework)
        backend.accelerator()  # initialises the GPU, which is not part of building a model
        began = time.perf_counter()
        if self.job is None:
            replica = backend.build(spec.model, spec.input_shape, spec.classes, spec.seed, threads)
        else:
            replica = backend.replica(self.job.job)
        if spec.precision != FP32:
            replica.compute_in(spec.precision)
        step.stretch(time.perf_counter() - began, spec.slowdown)
        return BuiltReplica(replica, time.perf_counter() - began, threads)

    @property
    def samples(self) -> Optional[int]:
        """Training samples of the job, where their number is known."""
        if self.job is None:
            return None
        known: Optional[int] = self.job.train.count()
        return known


def workload(spec: ReplicaSpec) -> Workload:
    """The workload of a spec. A user's job is loaded, which calls the user's function.

    Raises ValueError for a job of the wrong form, JobFailure for an error in the user's code.
    """
    job = spec.job
    if job is None:
        return Workload(spec, None)
    with own_code(job.folder):
        returned = framework(spec.framework).load_job(
            lambda: user_job.checked(job, user_job.call(job)), spec.seed, _threads(spec)
        )
    return Workload(spec, returned)


def job_batches(job: LoadedJob, batch: int, seed: int, part: DataPart = ALL, micro_batch: int = 0) -> BatchSource:
    """Batches of a job's training data, or of one member's part, read ahead where that pays.

    micro_batch: as in ReplicaSpec.
    """
    train = job.train
    if not isinstance(train, SampleSet):
        loader: BatchSource = train.loader(batch, part.weights, part.member)
        return BackgroundLoader(in_parts(loader, micro_batch))
    if len(part.weights) > 1:
        train = PartOfSamples(train, dataset.shards(len(train), part.weights, part.seed)[part.member])
    return BackgroundLoader(in_parts(BatchLoader(train, batch, seed), micro_batch))


def member_data(member: MemberSpec, loaded: Workload, read: Callable[[str], bytes]) -> MemberData:
    """The batches of a member and the test set.

    read: gives the content of a file on this device, as images are shipped.
    """
    most = member.replica.micro_batch
    if loaded.job is None:
        train, test = (ArraySamples(*dataset.unpack(read(path))) for path in (member.train, member.test))
        test.most_at_once = min(test.most_at_once, most) if most else test.most_at_once
        return in_parts(BatchLoader(train, member.batch, member.seed), most), test
    part = member.part or ALL
    evaluated = loaded.job.test
    evaluated.most_at_once = min(evaluated.most_at_once, most or member.batch)
    return job_batches(loaded.job, member.batch, member.seed, part, most), evaluated


def _threads(spec: ReplicaSpec) -> int:
    return usable_threads(cores.usable_cores(), 1 if spec.slowdown > 1.0 else None)
