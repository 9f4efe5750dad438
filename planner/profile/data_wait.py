"""A device that waits for its data says so. Pure."""

from planner.units import percent, seconds
from profilers.records.steps import StepProfile
from profilers.stats import mean

#: Waiting for less than this share of a gradient is not worth a note.
LEAST_SHARE = 0.1


def share(step: StepProfile) -> float:
    """The share of a gradient's time that the device waits for its batch to be read."""
    if not step.data_s or not step.gradient_s.values:
        return 0.0
    return min(1.0, step.data_s / mean(step.gradient_s.values))


def notes(step: StepProfile) -> list[str]:
    """A note where reading the data holds up the computation."""
    part = share(step)
    if part < LEAST_SHARE:
        return []
    return [
        f"{step.model} waits {seconds(step.data_s)} of each step for its data ({percent(part, 0)} of computing a "
        "gradient): reading them is the bottleneck there; prepare them beforehand, or on a faster disk"
    ]
