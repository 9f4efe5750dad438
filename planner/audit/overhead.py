"""What profiling costs, as a share of the training it plans."""

from typing import NamedTuple

from planner import plan
from planner.profilefile import Profile


class Overhead(NamedTuple):
    """Seconds profiling took for one model, beside the predicted time of its fastest cluster."""

    model: str
    profiling_s: float
    training_s: float
    workers: int

    @property
    def share(self) -> float:
        """Of the training."""
        return self.profiling_s / self.training_s


def overheads(profile: Profile, steps: int, batch: int | None = None) -> tuple[Overhead, ...]:
    """Of each model in a profile: what its own steps took, and its part of the links and the idle power, which are
    measured once for all."""
    devices = profile.devices.values()
    models = sorted({step.model for device in devices for step in device.steps})
    common_s = max((device.took_s.get("idle", 0.0) for device in devices), default=0.0) + sum(profile.took_s.values())
    return tuple(_overhead(profile, model, steps, batch, common_s / len(models)) for model in models)


def _overhead(profile: Profile, model: str, steps: int, batch: int | None, common_s: float) -> Overhead:
    own_s = max(device.took_s.get(model, 0.0) for device in profile.devices.values())
    best = plan.recommend(profile, {"time": 1.0}, model, steps=steps, batch=batch).row(1)
    return Overhead(model, own_s + common_s, best.prediction.time_s, len(best.config.workers))
