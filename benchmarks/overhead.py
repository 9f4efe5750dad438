"""What profiling a fleet costs, as a share of the training it plans: 100,000 steps on the fastest cluster.

Of each model in a profile: the seconds its own steps took, with the links and idle power measured for all models
divided among them, over the predicted time of the best cluster.
"""

from pathlib import Path

from reporting import parser, show

from planner import plan
from planner.profilefile import Profile, load_profile

STEPS = 100_000


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("profile", type=Path, help="a profile.json")
    arguments.add_argument("--steps", type=int, default=STEPS, help="steps of training")
    options = arguments.parse_args()
    profile = load_profile(options.profile)
    models = sorted({step.model for device in profile.devices.values() for step in device.steps})
    rows = [_row(profile, model, options.steps, len(models)) for model in models]
    show(f"Profiling over {options.steps} steps of training", rows, options.json)


def _row(profile: Profile, model: str, steps: int, models: int) -> dict[str, object]:
    own_s = max(device.took_s.get(model, 0.0) for device in profile.devices.values())
    common_s = max(device.took_s.get("idle", 0.0) for device in profile.devices.values()) + sum(profile.took_s.values())
    profiling_s = own_s + common_s / models
    best = plan.recommend(profile, {"time": 1.0}, model, steps=steps).row(1)
    return {
        "model": model,
        "steps timed": max(_timed(profile, model)),
        "profiling s": profiling_s,
        "training s": best.prediction.time_s,
        "workers": len(best.config.workers),
        "share %": 100 * profiling_s / best.prediction.time_s,
    }


def _timed(profile: Profile, model: str) -> list[int]:
    steps = (step for device in profile.devices.values() for step in device.steps if step.model == model)
    return [len(step.gradient_s.values) for step in steps]


if __name__ == "__main__":
    main()
