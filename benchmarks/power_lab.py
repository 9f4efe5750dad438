"""One power model a device predicts a workload that was left out: the paper's setting.

From a profile of several models, for each device with a sensor of the whole: every workload in turn
is left out, a power model is fitted to the others and to idle seconds, and predicts the one left
out.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from reporting import parser, show

from planner.profile import learned_power
from planner.profile.file import DeviceProfile, load_profile
from planner.profile.power_readings import whole_reading


def main() -> None:
    options = parser(__doc__)
    options.add_argument("profile", type=Path, help="a profile of two models or more")
    chosen = options.parse_args()
    rows = [
        row for name, device in load_profile(chosen.profile).devices.items() for row in _left_out(name, device)
    ]  # fmt: skip
    errors = [abs(row["error %"]) for row in rows]
    if not rows:
        sys.exit("no device of this profile has a sensor of the whole and two models or more")
    summary = f"mean {np.mean(errors):.2f}, worst {max(errors):.2f}; wanted <= 2"
    rows.append({**dict.fromkeys(rows[0], ""), "device": "all", "error %": summary})
    show("Watts of a workload that was left out", rows, chosen.json)


def _left_out(name: str, device: DeviceProfile) -> list[dict[str, Any]]:
    rows = []
    for step in device.steps:
        rest = device._replace(steps=tuple(other for other in device.steps if other.model != step.model))
        measured, model = whole_reading(step.window), learned_power.learn(rest)
        said = None if model is None else learned_power.estimate(model, step.window)
        if measured is None or measured.watts is None or model is None or said is None or said.watts is None:
            continue
        rows.append({
            "device": name, "left out": step.model, "model": model.name, "measured W": measured.watts,
            "source": measured.source, "estimated W": said.watts, "error %": 100 * (said.watts / measured.watts - 1),
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    main()
