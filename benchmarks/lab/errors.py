"""The error of a lab."""

from planner.errors import PlannerError


class LabError(PlannerError):
    """A lab cannot be built, changed or removed."""
