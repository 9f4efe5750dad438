"""What is to be measured of a fleet."""

from typing import NamedTuple

from backends import models
from planner.errors import PlanError
from planner.profilefile import DEFAULT_STEPS


class Wanted(NamedTuple):
    """What to measure. ``input_shape`` and ``classes`` are a data set's; the models' own where None."""

    models: tuple[str, ...]
    batch: int = 32
    protocol: str = "adaptive"
    framework: str = "torch"
    input_shape: tuple[int, ...] | None = None
    classes: int | None = None
    steps_planned: int = DEFAULT_STEPS

    def fingerprint(self, model: str) -> str:
        """The content hash of one of the models. Raises PlanError for one that does not exist or fit."""
        try:
            if models.is_user_model(model):
                return models.fingerprint(model)
            return models.fingerprint(models.model(model, self.input_shape, self.classes))
        except ValueError as error:
            raise PlanError(str(error)) from error
