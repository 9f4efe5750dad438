"""Sampling counters and power sensors ten times a second takes a share of one core.

On this machine as it is, and on trees with this machine's own /proc and processors and the power
monitors that the lab gives a device of each kind. The sampler slows down where it would take more
than its bound.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from reporting import Spread, parser, show

from planner.lab import device_files, power_monitors
from profilers.sampling import CPU_SHARE, PERIOD_S, Sampler

KINDS = ("pc", "tx2", "agx-xavier", "orin-nano", "agx-orin")
OWN = ("proc/stat", "proc/meminfo", "sys/devices/system/cpu")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--windows", type=int, default=5, help="windows of each")
    arguments.add_argument("--seconds", type=float, default=4.0, help="seconds of a window")
    options = arguments.parse_args()
    rows = [_row("this machine", Sampler(), None, options.windows, options.seconds)]
    for kind in KINDS:
        with _device(kind) as (root, files):
            rows.append(_row(kind, Sampler(root), (kind, files), options.windows, options.seconds))
    show(f"Share of a core that sampling every {PERIOD_S:g} s takes; bound {CPU_SHARE:g}", rows, options.json)


def _row(
    name: str, sampler: Sampler, monitored: tuple[str, device_files.SwappedFiles] | None, windows: int, seconds: float
) -> dict[str, object]:
    found = []
    sampler.start()
    for number in range(windows):
        end_s = time.monotonic() + seconds
        while (now_s := time.monotonic()) < end_s:
            if monitored:
                monitored[1].write(power_monitors.readings(monitored[0], 10.0 + now_s % 1.0, 5.0))
            time.sleep(PERIOD_S)
        found.append(sampler.turn() if number < windows - 1 else sampler.stop())
    counters = sum(reading.mean is not None for reading in found[-1].counters.values())
    sensors = [reading for reading in found[-1].power if reading.watts is not None]
    rates = [max(reading.count for reading in window.counters.values()) / window.duration_s for window in found]
    return {
        "device": name,
        "counters": counters,
        "sensors": len(sensors),
        "samples/s": Spread.of(rates),
        "share of a core": Spread.of(window.cpu_share or 0.0 for window in found),
    }


@contextmanager
def _device(kind: str) -> Iterator[tuple[str, device_files.SwappedFiles]]:
    """A tree with this machine's /proc and the monitors of a kind of device."""
    with tempfile.TemporaryDirectory() as root:
        device_files.write_labels(root, kind)
        for name in OWN:
            device_files.show_own(root, name)
        texts = power_monitors.readings(kind, 10.0, 5.0)
        files = device_files.SwappedFiles(root, texts)
        files.write(texts)
        yield root, files
        files.close()


if __name__ == "__main__":
    main()
