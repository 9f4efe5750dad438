"""The INA3221 power monitors of Jetsons, in both sysfs layouts, and the rule for a Jetson's total.

JetPack 4 and older: .../ina3221x/<bus>-<address>/iio:device<n>/{rail_name_<c>, in_power<c>_input mW};
JetPack 5 on: .../ina3221/<bus>-<address>/hwmon/hwmon<n>/{in<c>_label, in<c>_input mV, curr<c>_input mA}.

The rule: only totals are reported where there is one, so that nothing is counted twice.

- A total-input rail holds all others: POM_5V_IN (Nano) and VDD_MUX (carrier of the TX2) the board, VDD_IN (TX1, TX2,
  Xavier NX, Orin NX and Nano) the module.
- AGX modules have two inputs and no such rail. The high-voltage input feeds the shunts of GPU, CPU, SOC, CV and
  VDDRQ (AGX Xavier) or VDD_GPU_SOC and VDD_CPU_CV (AGX Orin), the other one the 5 V rail. Their sum is the module.
- VDDQ_VDD2_1V8AO (AGX Orin) is left out of it: VIN_SYS_5V0 feeds and includes it. Adding all rails counts it twice.
- Rails of an unknown board are reported one by one and belong to no sum.

AGX Xavier's shunts are as in NVIDIA's design guide (DG-09840, power monitor). AGX Orin's are as reported on NVIDIA's
forum (topic 223111), and that rail's readings are multiples of 5 V; no meter has confirmed it here. Nor has the path of
the TX1's monitor been seen on a board.
"""

import functools
import posixpath
import re
from typing import Callable, NamedTuple, Sequence, Tuple

from profilers.file_tree import FileTree, Unavailable
from profilers.sensors.base import Found, Sensor, proven

TOTAL_INPUTS = {"VDD_MUX": "board", "POM_5V_IN": "board", "VDD_IN": "module"}
#: The 5 V rail of AGX Xavier and AGX Orin: where it is, the rails add up to the module.
SUMMED = ("SYS5V", "VIN_SYS_5V0")
#: What that 5 V rail feeds.
BEHIND = ("VDDQ_VDD2_1V8AO",)
UNUSED = ("NC", "")


class Total(NamedTuple):
    """What is reported: its name, what it covers, and the rails that add up to it."""

    name: str
    covers: str
    labels: Tuple[str, ...]


class Rail(NamedTuple):
    """A monitored supply: its label and a reader of its watts."""

    label: str
    watts: Callable[[], float]


class Rails(Sensor):
    """The sum of one or more rails; fails when one of them does, rather than leave it out."""

    def __init__(self, name: str, covers: str, rails: Sequence[Rail], emulated: bool) -> None:
        self.name = name
        self.covers = covers
        self.emulated = emulated
        self._rails = tuple(rails)

    def read(self) -> float:
        return sum(rail.watts() for rail in self._rails)


def totals(labels: Sequence[str]) -> Tuple[Total, ...]:
    """What to report of the rails with these labels, by the rule above."""
    used = [label for label in labels if label not in UNUSED]
    inputs = [label for label in used if label in TOTAL_INPUTS]
    if inputs:
        return tuple(Total(label, TOTAL_INPUTS[label], (label,)) for label in inputs)
    if any(label in SUMMED for label in used):
        return (Total("sum", "module", tuple(label for label in used if label not in BEHIND)),)
    return tuple(Total(label, "rail", (label,)) for label in used)


def rails(tree: FileTree) -> Tuple[Rail, ...]:
    """The rails of every monitor, in the order of bus, address and channel, unused ones left out."""
    found = []
    for pattern, reader in LAYOUTS:
        for name in tree.glob("sys/bus/i2c/drivers/" + pattern):
            label = _label(tree, name)
            if label not in UNUSED:
                channel = re.sub(r"\D", "", posixpath.basename(name))
                found.append(Rail(label, functools.partial(reader, tree, posixpath.dirname(name), channel)))
    return tuple(found)


def discover(tree: FileTree) -> Found:
    """The totals of this Jetson, by the rule above; nothing on other machines."""
    found = rails(tree)
    return proven(
        [
            Rails(
                "ina3221:" + total.name,
                total.covers,
                [rail for rail in found if rail.label in total.labels],
                tree.emulated,
            )
            for total in totals([rail.label for rail in found])
        ]
    )


def _label(tree: FileTree, name: str) -> str:
    try:
        return tree.text(name)
    except Unavailable:
        return ""


def _old(tree: FileTree, folder: str, channel: str) -> float:
    return tree.number("%s/in_power%s_input" % (folder, channel)) / 1e3


def _new(tree: FileTree, folder: str, channel: str) -> float:
    millivolts = tree.number("%s/in%s_input" % (folder, channel))
    return millivolts * tree.number("%s/curr%s_input" % (folder, channel)) / 1e6


LAYOUTS = (("ina3221x/*/iio:device*/rail_name_[0-2]", _old), ("ina3221/*/hwmon/hwmon*/in[1-3]_label", _new))
