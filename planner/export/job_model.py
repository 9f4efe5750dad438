"""A job's run becomes a replica with the trained weights, made by the job's own function here."""

import contextlib
from pathlib import Path
from typing import NamedTuple

from backends.frameworks.base import Replica, layout_of
from backends.jobs.failure import JobFailure
from backends.jobs.job import LoadedJob
from backends.jobs.user_job import DATA_VARIABLE
from backends.protocol.member_specs import JobSpec, ReplicaSpec
from backends.training import checkpoint
from backends.training.workload import workload
from planner.errors import ExportError
from planner.jobs.reference import JobReference, find_job
from planner.plan.file import Plan


class TrainedJob(NamedTuple):
    """A job with its trained replica. ``notes``: for the operator."""

    reference: JobReference
    loaded: LoadedJob
    replica: Replica
    notes: tuple[str, ...]


def trained_job(plan: Plan, run_checkpoint: Path) -> TrainedJob:
    """Call the job's function on this machine and give its model the checkpoint's weights.

    Raises PlannerError, which names the line of an error in the user's code.
    """
    job = find_job(plan.run.model)
    spec = JobSpec(job.text, str(job.project.folder.resolve()), job.module, job.function)
    path = str(run_checkpoint.resolve())
    with contextlib.chdir(Path.cwd()):  # the function is called in its own folder
        try:
            found = workload(ReplicaSpec(plan.framework, job.text, job=spec))
            replica = found.build().replica
            saved = checkpoint.read_for(path, layout_of(replica))
        except (JobFailure, ValueError, OSError) as error:
            raise ExportError(f"cannot export {plan.run.model}: {error}{_hint(error)}") from error
    replica.set_weights(saved.weights)
    replica.state[:] = saved.state
    replica.load()
    changed = job.fingerprint != plan.fingerprint
    notes = (f"{plan.run.model} has changed since it was profiled; the weights are put into the model as it is now",)
    assert found.brought is not None, "a spec with a job loads it"
    return TrainedJob(job, found.brought, replica, notes * changed)


def _hint(error: Exception) -> str:
    """The remedy where the job misses its data, which may be on the devices only."""
    missing = isinstance(error, JobFailure) and "FileNotFound" in str(error)
    return f"; if its data are elsewhere here, name their folder in {DATA_VARIABLE}" if missing else ""
