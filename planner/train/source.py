"""The source of a run's samples must be the one that its plan was profiled for."""

from typing import NamedTuple

from backends import models
from backends.data.dataset import Dataset
from planner.errors import PlanError
from planner.jobs.reference import JobReference
from planner.plan.file import Plan
from planner.profile.request import ProfileRequest
from planner.train.training_data import JobData, ShippedImages, TrainingData


class TrainingSource(NamedTuple):
    """What is trained on: the data set of a directory, or a job with its own."""

    images: Dataset | None = None
    job: JobReference | None = None

    @property
    def input_shape(self) -> tuple[int, ...] | None:
        return tuple(self.images.input_shape) if self.images is not None else None

    @property
    def classes(self) -> int | None:
        return self.images.classes if self.images is not None else None

    @property
    def samples(self) -> int | None:
        return len(self.images.train_labels) if self.images is not None else None

    def data(self, plan: Plan) -> TrainingData:
        """The data of a run; how many a job has is known from its profile."""
        if self.images is not None:
            return ShippedImages(self.images)
        assert self.job is not None, "a source has one or the other"
        return JobData(self.job, plan.samples)


def check_fit(plan: Plan, source: TrainingSource) -> str:
    """A remark on a user's own model or job whose code has changed since it was profiled, if any.

    It trains as it is now, the same on all devices, and only the prediction may be off. Raises
    PlanError where another model or job, or other images, were profiled.
    """
    if plan.run.job or source.job is not None:
        return _check_job(plan, source.job)
    shape, classes = source.input_shape or (), source.classes
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
