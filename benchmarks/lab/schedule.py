"""A schedule changes the devices of a lab at set times."""

import time
from collections.abc import Callable, Sequence

from planner.units import number

from .lab import Lab, require_cores
from .spec import Change


def play(lab: Lab, schedule: Sequence[Change], speed: float, report: Callable[[str], None]) -> None:
    """Make every change at its time divided by ``speed``, and report each. Raises LabError."""
    for change in schedule:
        lab.device(change.device)
        require_cores(change.device, change.cpus or 0.0)
    began_s = time.monotonic()
    made = 0
    try:
        for change in schedule:
            time.sleep(max(0.0, began_s + change.at_s / speed - time.monotonic()))
            lab.set(change.device, change.rate_bytes_per_s, change.cpus)
            made += 1
            report(describe(change))
    except KeyboardInterrupt:
        now_s = (time.monotonic() - began_s) * speed
        report(f"stopped at {now_s:.1f} s, after {made} of {len(schedule)} changes; the lab stays as it is now")
        raise


def describe(change: Change) -> str:
    parts = [] if change.rate_bytes_per_s is None else [number(change.rate_bytes_per_s * 8, "bit/s")]
    parts += [] if change.cpus is None else [f"{change.cpus:g} cpus"]
    return f"{change.at_s:g} s: {change.device} {', '.join(parts)}"
