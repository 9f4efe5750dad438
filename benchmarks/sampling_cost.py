"""Sampling this machine's counters and power sensors ten times a second takes a share of one core.

The sampler slows down where it would take more than its bound.
"""

import time

from reporting import Spread, parser, show

from profilers.sampling import CPU_SHARE, PERIOD_S, Sampler


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--windows", type=int, default=5, help="how many")
    arguments.add_argument("--seconds", type=float, default=4.0, help="seconds of a window")
    options = arguments.parse_args()
    row = _row(options.windows, options.seconds)
    show(f"Share of a core that sampling every {PERIOD_S:g} s takes; bound {CPU_SHARE:g}", [row], options.json)


def _row(windows: int, seconds: float) -> dict[str, object]:
    sampler, found = Sampler(), []
    sampler.start()
    for number in range(windows):
        time.sleep(seconds)
        found.append(sampler.turn() if number < windows - 1 else sampler.stop())
    rates = [max(reading.count for reading in window.counters.values()) / window.duration_s for window in found]
    return {
        "counters": sum(reading.mean is not None for reading in found[-1].counters.values()),
        "sensors": sum(reading.watts is not None for reading in found[-1].power),
        "samples/s": Spread.of(rates),
        "share of a core": Spread.of(window.cpu_share or 0.0 for window in found),
    }


if __name__ == "__main__":
    main()
