"""Profiling costs a share of the training it plans: 100,000 steps on the fastest cluster.

Of each model in a profile: the seconds its own steps took, with the links and idle power measured
for all models divided among them, over the predicted time of the best cluster.
"""

from pathlib import Path

from reporting import parser, show

from planner.audit.scoring.scoreboard import Overhead, overheads
from planner.profile.file import Profile, load_profile

STEPS = 100_000


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("profile", type=Path, help="a profile.json")
    arguments.add_argument("--steps", type=int, default=STEPS, help="steps of training")
    options = arguments.parse_args()
    profile = load_profile(options.profile)
    rows = [_row(profile, found) for found in overheads(profile, options.steps)]
    show(f"Profiling over {options.steps} steps of training", rows, options.json)


def _row(profile: Profile, found: Overhead) -> dict[str, object]:
    return {
        "model": found.model,
        "steps timed": max(_timed(profile, found.model)),
        "profiling s": found.profiling_s,
        "training s": found.training_s,
        "workers": found.workers,
        "share %": 100 * found.share,
    }


def _timed(profile: Profile, model: str) -> list[int]:
    steps = (step for device in profile.devices.values() for step in device.steps if step.model == model)
    return [len(step.gradient_s.values) for step in steps]


if __name__ == "__main__":
    main()
