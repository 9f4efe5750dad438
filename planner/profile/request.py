"""What is to be measured of a fleet."""

from typing import NamedTuple

from backends import models
from backends.frameworks.base import FRAMEWORKS
from planner.errors import PlanError
from planner.profile.file import DEFAULT_STEPS
from profilers.records import Facts


class ProfileRequest(NamedTuple):
    """What to measure. ``framework``: what to compute with; on each device the first that it has where None.
    ``input_shape`` and ``classes`` are a data set's; the models' own where None."""

    models: tuple[str, ...]
    batch: int = 32
    protocol: str = "adaptive"
    framework: str | None = None
    input_shape: tuple[int, ...] | None = None
    classes: int | None = None
    steps_planned: int = DEFAULT_STEPS

    def framework_on(self, facts: Facts) -> str:
        """What a device is to compute with. Raises PlanError where it has not got that."""
        asked = [self.framework] if self.framework else list(FRAMEWORKS)
        looked_up = {name: facts.frameworks.get(name, {}) for name in asked}
        for name, found in looked_up.items():
            if "error" not in found:
                return name
        reasons = "; ".join(str(found["error"]) for found in looked_up.values())
        raise PlanError(f"{reasons}; `planner check` tells what to install")

    def fingerprint(self, model: str) -> str:
        """The content hash of one of the models. Raises PlanError for one that does not exist or fit."""
        try:
            if models.is_user_model(model):
                return models.fingerprint(model)
            return models.fingerprint(models.model(model, self.input_shape, self.classes))
        except ValueError as error:
            raise PlanError(str(error)) from error
