"""A profile request states what to measure of a fleet."""

from typing import NamedTuple

from backends import models
from backends.frameworks.base import FRAMEWORKS, NO_CHECKPOINTING
from backends.strategies.engine import TORCH
from backends.streams.spec import StreamSpec
from planner.errors import PlanError
from planner.jobs.reference import JobReference
from planner.profile.file import DEFAULT_STEPS
from planner.profile.link_probe import LENGTHS, ProbeLengths
from profilers.mixed_precision import FP16, FP32, NEEDS
from profilers.records.device import Facts
from profilers.records.steps import ComputeSettings


class ProfileRequest(NamedTuple):
    """What to measure on each device.

    models: known ones, users' model files, and the job by its text; none to leave all as it is.
    framework: what to compute with; None is the first one that each device has.
    input_shape, classes: of a data set; None is each model's own.
    idle_s: seconds of idling in which idle watts are measured.
    stream: whose samples are counted as they arrive; None for none. A replay has none to count.
    """

    models: tuple[str, ...]
    batch: int = 32
    protocol: str = "adaptive"
    framework: str | None = None
    input_shape: tuple[int, ...] | None = None
    classes: int | None = None
    steps_planned: int = DEFAULT_STEPS
    idle_s: float = 2.0
    links: ProbeLengths = LENGTHS
    job: JobReference | None = None
    compute: ComputeSettings = ComputeSettings()
    stream: StreamSpec | None = None

    def check_precision(self, facts: Facts) -> None:
        """Raises PlanError for a device that has no instructions for the precision."""
        precision = self.compute.precision
        if precision != FP32 and precision not in facts.precisions:
            raise PlanError(f"{precision} needs {NEEDS[precision]}; profile it with --precision {FP32}")

    def framework_on(self, facts: Facts) -> str:
        """The framework of a device.

        Raises PlanError where it is not installed, or cannot compute in the precision.
        """
        asked = [self.framework] if self.framework else list(FRAMEWORKS)
        installed = {name: facts.frameworks.get(name, {}) for name in asked}
        for name, state in installed.items():
            if "error" not in state:
                if self.compute.precision == FP16 and name != TORCH:
                    raise PlanError(
                        f"{FP16} needs torch, which scales the loss; profile it with --framework torch or "
                        f"--precision {FP32}"
                    )
                if self.compute.activation_checkpointing and name != TORCH:
                    raise PlanError(NO_CHECKPOINTING)
                return name
        reasons = "; ".join(str(state["error"]) for state in installed.values())
        raise PlanError(f"{reasons}; `planner check` tells what to install")

    def fingerprint(self, model: str) -> str:
        """The content hash of a model. PlanError: there is none, or the data set does not fit."""
        if self.job is not None and self.job.text == model:
            return self.job.fingerprint
        try:
            if models.is_user_model(model):
                return models.fingerprint(model)
            return models.fingerprint(models.model(model, self.input_shape, self.classes))
        except ValueError as error:
            raise PlanError(str(error)) from error
