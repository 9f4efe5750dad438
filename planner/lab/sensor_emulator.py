"""A program emulates a device's sensors: ``python -m planner.lab.sensor_emulator CONFIG.json``.

It runs as long as CONFIG.json exists, in the device's network namespace and outside of its control
group. In every period it reads the group's CPU time and the interface's bytes, and writes the
resulting files of the device's power monitors and /proc (``planner.lab.power``,
``planner.lab.power_terms``, ``planner.lab.device_files``). CONFIG.json is read again whenever it is
replaced. It imports nothing heavy, because each device has such a program.
"""

import os
import signal
import sys
import time
from pathlib import Path
from random import Random
from typing import NamedTuple

from planner import json_records
from planner.errors import PlannerError
from planner.lab import device_files, power, power_monitors, power_terms
from planner.lab.kernel_counters import CpuCounter, KernelCounters, MemoryCounters
from planner.lab.power import PhysicalPower
from planner.lab.power_terms import PowerTerms

#: Seconds between two readings of the memory, which is slow to read and to change.
MEMORY_PERIOD_S = 1.0


class Config(NamedTuple):
    """The content of CONFIG.json.

    tree: folder to write into, the device's PLANNER_SYSFS_ROOT.
    kind: a key of planner.lab.power_monitors.MONITORS, or any without ``power``.
    interface: network interface whose bytes count, such as "eth0".
    cpus: processors that the device may use, its quota.
    power: None for no power sensors, only /proc.
    seed: of the noise.
    memory: None without a limit.
    terms: what bends its watts; None where they are linear in the utilisation.
    """

    tree: str
    kind: str
    usage: CpuCounter
    interface: str
    cpus: float
    power: PhysicalPower | None
    seed: int
    memory: MemoryCounters | None = None
    terms: PowerTerms | None = None


def load_config(path: str) -> Config:
    return json_records.load(Config, Path(path), "`planner lab up` writes it anew")


class SensorEmulator:
    """Computes sensor files from counters, period by period."""

    def __init__(self, config: Config) -> None:
        self.config = config  # a later one may change processors, power and terms, not the counters
        self._random = Random(config.seed)
        self._sources = KernelCounters(config.usage, config.interface, config.memory)
        self._before = self._sources.counts()
        self._busy_s = self._owed_s = self._lasted_s = 0.0
        self._warmth = 0.0  # a device that is switched on is as warm as when it idles
        self._memory_due_s = self._before.at_s
        self._memory: dict[str, str] = {}
        device_files.write_labels(config.tree, config.kind if config.power else None)
        if config.memory is None:
            device_files.show_own(config.tree, "proc/meminfo")
        texts = self._texts(0.0, 0.0, 0.0)
        self._files = device_files.SwappedFiles(config.tree, texts)
        self._files.write(texts)

    def tick(self) -> None:
        """Write the readings of the time since the last tick. Raises LabError."""
        before, self._before = self._before, self._sources.counts()
        lasted_s = self._before.at_s - before.at_s
        utilisation = max(0.0, self._before.cpu_s - before.cpu_s) / lasted_s / self.config.cpus
        bytes_per_s = max(0, self._before.network_bytes - before.network_bytes) / lasted_s
        self._files.write(self._texts(self._load(utilisation, lasted_s), bytes_per_s, lasted_s))

    @property
    def period_s(self) -> float:
        return self.config.power.period_s if self.config.power else power.PERIOD_S

    def close(self) -> None:
        """Remove the readings: a device that is switched off has none."""
        self._files.close()

    def _load(self, utilisation: float, lasted_s: float) -> float:
        """The utilisation of the device, 0..1.

        A quota is granted in portions, so that a period may use more than its share. The excess
        counts in the next period.
        """
        due_s = self._owed_s + utilisation * lasted_s
        busy_s = min(due_s, lasted_s)
        self._owed_s = min(due_s - busy_s, lasted_s)
        self._busy_s += busy_s
        self._lasted_s += lasted_s
        return busy_s / lasted_s

    def _texts(self, utilisation: float, bytes_per_s: float, lasted_s: float) -> dict[str, str]:
        config = self.config
        if config.memory and self._before.at_s >= self._memory_due_s:
            self._memory_due_s = self._before.at_s + MEMORY_PERIOD_S
            text = device_files.meminfo(config.memory.limit_bytes, self._sources.memory_bytes())
            self._memory = {"proc/meminfo": text}
        load = {"proc/stat": device_files.stat(config.cpus, self._busy_s, self._lasted_s)}
        return self._power(utilisation, bytes_per_s, lasted_s) | load | self._memory

    def _power(self, utilisation: float, bytes_per_s: float, lasted_s: float) -> dict[str, str]:
        model = self.config.power
        if model is None:
            return {}
        share = self._load_share(utilisation, lasted_s)
        total_w = power.watts(model, share, bytes_per_s, self._random)
        return power_monitors.readings(self.config.kind, total_w, min(total_w, model.dynamic_w * share))

    def _load_share(self, utilisation: float, lasted_s: float) -> float:
        """Share of the dynamic watts, after the device was warmed by this period."""
        terms = self.config.terms
        if terms is None:
            return utilisation
        warmth = power_terms.heated(terms, self._warmth, utilisation, lasted_s)
        self._warmth = warmth.after
        return power_terms.load_share(terms, utilisation, warmth.mean)


def run(path: str) -> None:
    """Meter until the file at ``path`` is gone. Raises LabError."""
    stamp, emulator = _stamp(path), SensorEmulator(load_config(path))
    try:
        due_s = time.monotonic()
        while True:
            due_s = max(due_s + emulator.period_s, time.monotonic())
            time.sleep(max(0.0, due_s - time.monotonic()))
            stamp_now = _stamp(path)
            if stamp_now != stamp:
                stamp, emulator.config = stamp_now, load_config(path)
            emulator.tick()
    except FileNotFoundError:
        return
    finally:
        emulator.close()


def main(arguments: list[str]) -> int:
    """Run the sensor emulator. SIGTERM and SIGINT end it, as the removal of CONFIG.json does."""
    if len(arguments) != 1:
        print("usage: python -m planner.lab.sensor_emulator CONFIG.json", file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        run(arguments[0])
    except (PlannerError, OSError) as error:
        print(f"lab sensor emulator: {error}", file=sys.stderr)
        return 1
    return 0


def _stamp(path: str) -> tuple[int, int]:
    """A value that changes when a file is replaced. Raises FileNotFoundError."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_ino


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
