"""This module reads the INA3221 power monitors of Jetsons and chooses the rails of the total.

JetPack 4 and older have .../ina3221x/<bus>-<address>/iio:device<n>/
{rail_name_<c>, in_power<c>_input mW}. JetPack 5 and later have
.../ina3221/<bus>-<address>/hwmon/hwmon<n>/{in<c>_label, in<c>_input mV, curr<c>_input mA}.

Only totals are reported where there are any, so that nothing is counted twice:

- A total-input rail includes all others. POM_5V_IN (Nano) and VDD_MUX (carrier of the TX2) are
  the board; VDD_IN (TX1, TX2, Xavier NX, Orin NX and Nano) is the module.
- AGX modules have no such rail. Their high-voltage rails and the 5 V rail add up to the module,
  without VDDQ_VDD2_1V8AO (AGX Orin): VIN_SYS_5V0 feeds and includes it.
- Rails of an unknown board are reported one by one and belong to no sum.

Sources: NVIDIA's design guide of the AGX Xavier (DG-09840), NVIDIA's forum for the AGX Orin (topic
223111). No meter has confirmed the sum of the Orin, and no board the path of the TX1's monitor.
"""

import functools
import posixpath
import re
from typing import Callable, NamedTuple, Sequence, Tuple

from profilers.file_tree import FileTree
from profilers.sensors.base import DiscoveredSensors, Sensor, check_sensors

TOTAL_INPUTS = {"VDD_MUX": "board", "POM_5V_IN": "board", "VDD_IN": "module"}
#: The 5 V rail of AGX Xavier and AGX Orin: on these boards the rails add up to the module.
FIVE_VOLT_INPUTS = ("SYS5V", "VIN_SYS_5V0")
#: Rails that the 5 V rail feeds.
FED_BY_FIVE_VOLTS = ("VDDQ_VDD2_1V8AO",)
UNUSED = ("NC", "")


class Total(NamedTuple):
    """A reported total: its name, its coverage, and the labels of its rails."""

    name: str
    covers: str
    labels: Tuple[str, ...]


class Rail(NamedTuple):
    """A monitored supply: its label and a reader of its watts."""

    label: str
    watts: Callable[[], float]


def totals(labels: Sequence[str]) -> Tuple[Total, ...]:
    """The totals among the rails with these labels, by the rule above."""
    used = [label for label in labels if label not in UNUSED]
    inputs = [label for label in used if label in TOTAL_INPUTS]
    if inputs:
        return tuple(Total(label, TOTAL_INPUTS[label], (label,)) for label in inputs)
    if any(label in FIVE_VOLT_INPUTS for label in used):
        return (Total("sum", "module", tuple(label for label in used if label not in FED_BY_FIVE_VOLTS)),)
    return tuple(Total(label, "rail", (label,)) for label in used)


def rails(tree: FileTree) -> Tuple[Rail, ...]:
    """The used rails of all monitors, in the order of bus, address and channel."""
    found = []
    for pattern, reader in LAYOUTS:
        for name in tree.glob("sys/bus/i2c/drivers/" + pattern):
            label = tree.first_text(name)
            if label not in UNUSED:
                channel = re.sub(r"\D", "", posixpath.basename(name))
                found.append(Rail(label, functools.partial(reader, tree, posixpath.dirname(name), channel)))
    return tuple(found)


def discover(tree: FileTree) -> DiscoveredSensors:
    """The totals of this Jetson, by the rule above; none on other machines."""
    found = rails(tree)
    sensors = [
        Sensor("ina3221:" + total.name, total.covers, functools.partial(_sum, found, total))
        for total in totals([rail.label for rail in found])
    ]
    return check_sensors(sensors)


def _sum(found: Sequence[Rail], total: Total) -> float:
    return sum(rail.watts() for rail in found if rail.label in total.labels)


def _iio_watts(tree: FileTree, folder: str, channel: str) -> float:
    return tree.number("%s/in_power%s_input" % (folder, channel)) / 1e3


def _hwmon_watts(tree: FileTree, folder: str, channel: str) -> float:
    millivolts = tree.number("%s/in%s_input" % (folder, channel))
    return millivolts * tree.number("%s/curr%s_input" % (folder, channel)) / 1e6


LAYOUTS = (
    ("ina3221x/*/iio:device*/rail_name_[0-2]", _iio_watts),
    ("ina3221/*/hwmon/hwmon*/in[1-3]_label", _hwmon_watts),
)
