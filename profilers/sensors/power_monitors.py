"""This module reads the power monitors of boards: the INA3221 of Jetsons and the INA2xx.

- INA3221, JetPack 4 and older: .../ina3221x/<bus>-<address>/iio:device<n>/
  {rail_name_<c>, in_power<c>_input mW}.
- All others are hwmon devices of the kernel: {in<c>_label, in<c>_input mV, curr<c>_input mA}, and
  power<c>_input in uW where the chip multiplies itself (INA219, INA226, INA238 and others).

``rail_totals`` says which rails are a total. Where there is one, nothing else is reported, so that
nothing is counted twice.
"""

import functools
import posixpath
from typing import Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from profilers.file_tree import FileTree
from profilers.sensors.base import DiscoveredSensors, Sensor, check_sensors
from profilers.sensors.rail_totals import RAIL, Total, totals

INA3221 = "ina3221"
IIO = "sys/bus/i2c/drivers/ina3221x/*/iio:device*"
HWMON = ("sys/bus/i2c/drivers/ina[0-9]*/*/hwmon/hwmon*", "sys/class/hwmon/hwmon*")


class Rail(NamedTuple):
    """A monitored supply: its chip, its label and a reader of its watts."""

    chip: str
    label: str
    watts: Callable[[], float]


def rails(tree: FileTree) -> Tuple[Rail, ...]:
    """The rails of all monitors, in the order of bus, address and channel."""
    return (*_iio_rails(tree), *_hwmon_rails(tree))


def discover(tree: FileTree) -> DiscoveredSensors:
    """The totals of this board, or its rails where it has none; none on other machines."""
    found = rails(tree)
    reported = [
        (chip, total)
        for chip in dict.fromkeys(rail.chip for rail in found)
        for total in totals([rail.label for rail in found if rail.chip == chip])
    ]
    whole = [(chip, total) for chip, total in reported if total.covers != RAIL]
    return check_sensors(
        [
            Sensor(chip + ":" + total.name, total.covers, functools.partial(_sum, found, chip, total))
            for chip, total in whole or reported
        ]
    )


def _sum(found: Sequence[Rail], chip: str, total: Total) -> float:
    return sum(rail.watts() for rail in found if rail.chip == chip and rail.label in total.labels)


def _iio_rails(tree: FileTree) -> Iterator[Rail]:
    for name in tree.glob(IIO + "/rail_name_[0-2]"):
        power = "%s/in_power%s_input" % (posixpath.dirname(name), name[-1])
        yield Rail(INA3221, tree.first_text(name), functools.partial(_scaled, tree, power, 1e3))


def _hwmon_rails(tree: FileTree) -> Iterator[Rail]:
    for folder in _hwmon_folders(tree):
        chip = tree.first_text(folder + "/name") or folder.split("/")[4]
        for channel in "123":
            stem = "%s/%%s%s_input" % (folder, channel)
            if tree.glob(stem % "power"):
                read = functools.partial(_scaled, tree, stem % "power", 1e6)
            elif tree.glob(stem % "curr"):
                read = functools.partial(_product, tree, stem % "in", stem % "curr")
            else:
                continue
            yield Rail(chip, _label(tree, folder, channel), read)


def _hwmon_folders(tree: FileTree) -> List[str]:
    """The folder of each monitor; below /sys/class is a second path to those of the drivers."""
    found: Dict[str, str] = {}
    for pattern in HWMON:
        for folder in tree.glob(pattern):
            if tree.first_text(folder + "/name").startswith("ina") or "/drivers/" in folder:
                found.setdefault(posixpath.basename(folder), folder)
    return sorted(found.values())


def _label(tree: FileTree, folder: str, channel: str) -> str:
    """The board's name of a channel; without one, that of the folder, which no rule knows."""
    names = ["%s/%s%s_label" % (folder, kind, channel) for kind in ("in", "power", "curr")]
    return tree.first_text(*names, folder + "/label") or "%s.%s" % (posixpath.basename(folder), channel)


def _scaled(tree: FileTree, name: str, units_in_a_watt: float) -> float:
    return tree.number(name) / units_in_a_watt


def _product(tree: FileTree, millivolts: str, milliamperes: str) -> float:
    return tree.number(millivolts) * tree.number(milliamperes) / 1e6
