"""The data or the job of a run must be what its plan was profiled for."""

from backends import models
from planner.errors import PlanError
from planner.jobs.reference import JobReference
from planner.plan.file import Plan
from planner.profile.request import ProfileRequest
from planner.train.training_data import TrainingData


def check_fit(plan: Plan, data: TrainingData) -> str:
    """A remark on a user's own model or job whose code has changed since it was profiled, if any.

    It trains as it is now, the same on all devices, and only the prediction may be off. Raises
    PlanError where another model or job, or other images, were profiled.
    """
    if plan.run.job or data.job is not None:
        return _check_job(plan, data.job)
    shape, classes = data.input_shape or (), data.classes
    needed = ProfileRequest((plan.run.model,), input_shape=shape, classes=classes).fingerprint(plan.run.model)
    if needed != plan.fingerprint and not models.is_user_model(plan.run.model):
        images = "x".join(str(size) for size in shape)
        raise PlanError(
            f"{plan.run.model} was profiled for other images than these ({images}, {classes} classes); "
            "profile again with the same --data"
        )
    return _note_of_change(plan, needed)


def _check_job(plan: Plan, job: JobReference | None) -> str:
    if job is None or not plan.run.job or job.text != plan.run.model:
        raise PlanError(
            f"the plan is for {plan.run.model}, not for {'--data' if job is None else f'--job {job.text}'}; "
            "plan again with --metric, or leave the option out"
        )
    return _note_of_change(plan, job.fingerprint)


def _note_of_change(plan: Plan, fingerprint: str) -> str:
    if fingerprint == plan.fingerprint:
        return ""
    return (
        f"{plan.run.model} has changed since it was profiled, so the prediction is that of its former version; "
        "it trains as it is now"
    )
