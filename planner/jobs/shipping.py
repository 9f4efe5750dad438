"""A job is sent to a device with its whole project, of which only new files travel."""

from backends.protocol.member_specs import JobSpec
from planner.agents.client import AgentClient
from planner.agents.project import send_project
from planner.fleet.device import Device
from planner.jobs.reference import JobReference


def ship_job(agent: AgentClient, job: JobReference, device: Device) -> JobSpec:
    """Send a job's project to a device; returns the job as it is there. Raises RemoteError."""
    return JobSpec(job.text, send_project(agent, job.project), job.module, job.function, device.data)
