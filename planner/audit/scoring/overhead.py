"""The overhead of profiling is its time relative to that of the training it plans."""

from collections.abc import Sequence
from typing import NamedTuple

from planner.plan.recommend import recommend
from planner.plan.request import RecommendRequest
from planner.profile.file import Profile


class Overhead(NamedTuple):
    """Seconds of profiling one model, and the predicted time of its fastest cluster."""

    model: str
    profiling_s: float
    training_s: float
    workers: int

    @property
    def share(self) -> float:
        return self.profiling_s / self.training_s


def overheads(
    profile: Profile, steps: int, framework: str | None = None, batch: int | None = None, models: Sequence[str] = ()
) -> tuple[Overhead, ...]:
    """The overhead of each model, or of those in ``models``.

    Each model counts its own steps in every framework, and its share of the measurements of links
    and idle power, which are made once for all models.
    """
    every = sorted({step.model for device in profile.devices.values() for step in device.steps})
    common_s = profile.longest_s(lambda device: device.took_s.get("idle", 0.0)) + sum(profile.took_s.values())

    def of(model: str) -> Overhead:
        own_s = profile.longest_s(lambda device: device.timing_s(model))
        best = recommend(profile, RecommendRequest({"time": 1.0}, model, framework, steps, batch)).row(1)
        return Overhead(model, own_s + common_s / len(every), best.prediction.time_s, len(best.config.workers))

    return tuple(of(model) for model in models or every)
