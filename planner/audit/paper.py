"""What Gu et al. report of their own choice, to stand beside ours (as their evaluation sums it up)."""

from typing import NamedTuple

SOURCE = "Gu et al.: 3 devices, 5 models, 1000/100/10 Mbit/s, 4 metrics, 4 repetitions, 7 configurations"


class Reported(NamedTuple):
    """Shares of 1; ranges over models, of power over devices."""

    selections: int
    best: float
    first_two: float
    step_error: tuple[float, float]
    power_error: tuple[float, float]
    overhead: tuple[float, float]


REPORTED = Reported(240, 0.7667, 0.9583, (0.0098, 0.1601), (0.0117, 0.022), (0.0069, 0.1509))

#: Best chosen, and the error of a step alone, by model.
BEST = {"alexnet": 0.75, "cifar10": 0.875, "nin": 0.75, "resnet": 0.7083, "squeezenet": 0.75}
STEP_ERROR = {"alexnet": 0.0098, "cifar10": 0.0334, "nin": 0.1601, "resnet": 0.0113, "squeezenet": 0.0388}
