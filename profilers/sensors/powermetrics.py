"""This module reads the watts of a Mac's processor by powermetrics, which root alone may run.

They are an estimate of macOS for the whole chip (of Apple's with GPU and neural engine, of Intel's
with its graphics), without memory, display and other parts of the machine.
"""

import functools
import os
import re
import shutil
from typing import Optional

from profilers.file_tree import FileTree, Unavailable
from profilers.running_program import RunningProgram
from profilers.sensors.base import NO_SENSORS, DiscoveredSensors, check_sensors
from profilers.sensors.polling import PolledSensor

PROGRAM = "powermetrics"
NAME = "powermetrics:package"
#: A sample a second, and each line as soon as it is there.
ARGUMENTS = ("--samplers", "cpu_power", "-i", "1000", "-b", "1")
#: Of an Apple chip on macOS 12 and later, of one before, and of an Intel processor.
_WATTS = re.compile(
    r"(?:Combined Power \(CPU \+ GPU \+ ANE\)|Package Power|Intel energy model derived package power \([^)]*\)): *"
    r"(\d{1,9}(?:\.\d{1,9})?) *(m?)W\s*"
)
NEEDS_ROOT = (
    "powermetrics runs as root alone: let this user run it without a password, by `sudo visudo` and the line "
    "NAME ALL=(root) NOPASSWD: /usr/bin/powermetrics"
)


def parse(line: str) -> Optional[float]:
    """Parse the watts of the package; None for another line."""
    found = _WATTS.fullmatch(line)
    return float(found.group(1)) / (1e3 if found.group(2) else 1.0) if found else None


class PackagePower(PolledSensor):
    """The watts of each sample, at its own time."""

    def __init__(self, program: RunningProgram) -> None:
        super().__init__(NAME, "cpu", program, float)

    def read(self) -> float:
        try:
            return super().read()
        except Unavailable as error:
            raise Unavailable(str(error) if os.geteuid() == 0 else NEEDS_ROOT) from None


def discover(tree: FileTree) -> DiscoveredSensors:
    """The package of this Mac; none on other machines."""
    if not tree.is_own or shutil.which(PROGRAM) is None:
        return NO_SENSORS
    return check_sensors([PackagePower(_shared())])


@functools.lru_cache(maxsize=None)
def _shared() -> RunningProgram:
    """The one program of this process."""
    as_root = () if os.geteuid() == 0 else ("sudo", "-n")
    return RunningProgram(as_root + (PROGRAM,) + ARGUMENTS, parse)
