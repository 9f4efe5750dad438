"""A user's own code is sent to a device that lacks it: a job's project, or a file with a model."""

from pathlib import Path

from backends import models
from backends.models.user_source import source_files
from backends.protocol.member_specs import JobSpec, ReplicaSpec
from planner.agents.client import AgentClient
from planner.agents.project import send_project
from planner.fleet.device import Device
from planner.jobs.reference import JobReference


def ship_code(agent: AgentClient, device: Device, spec: ReplicaSpec, job: JobReference | None = None) -> ReplicaSpec:
    """Send the code of a replica to a device; returns the spec with what it is there.

    job: the one that the replica is of; None for a model. Raises RemoteError.
    """
    there = spec._replace(slowdown=device.slowdown)
    if job is None:
        return there._replace(model=ship_model(agent, spec.model))
    folder = send_project(agent, job.project)
    return there._replace(job=JobSpec(job.text, folder, job.module, job.function, device.data))


def ship_model(agent: AgentClient, model: str) -> str:
    """Store a user's model on a device and return its name there.

    model: the name of a known model, returned unchanged, or ``path.py:function``.
    Raises RemoteError.
    """
    if not models.is_user_model(model):
        return model
    path, _, function = model.rpartition(":")
    folder = f"model-{models.fingerprint(model)}"
    stored = [
        agent.store(f"{folder}/{source.name}", source.content, str(Path(path).parent / source.name))
        for source in source_files(model)
    ]
    return f"{stored[0]}:{function}"
