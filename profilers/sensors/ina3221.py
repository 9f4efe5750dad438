"""The INA3221 power monitors of Jetsons, in both sysfs layouts.

JetPack 4 and older: .../ina3221x/<bus>-<address>/iio:device<n>/{rail_name_<c>, in_power<c>_input mW};
JetPack 5 on: .../ina3221/<bus>-<address>/hwmon/hwmon<n>/{in<c>_label, in<c>_input mV, curr<c>_input mA}.

Only totals are reported where there is one, so that nothing is counted twice: a total-input rail
(POM_5V_IN on Nano, VDD_MUX of the TX2 carrier: the board; VDD_IN: the module), which holds all others;
on AGX modules, which have none, the sum of all rails (their 5 V rail feeds all that the others do not).
Rails of an unknown board are reported one by one and belong to no sum.
"""

import functools
import posixpath
import re
from typing import Callable, NamedTuple, Tuple

from profilers.sensors.base import Found, Sensor, proven
from profilers.tree import Tree, Unavailable

TOTAL_INPUTS = {"VDD_MUX": "board", "POM_5V_IN": "board", "VDD_IN": "module"}
#: The 5 V rail of AGX Xavier and AGX Orin: where it is, the rails add up to the module.
SUMMED = ("SYS5V", "VIN_SYS_5V0")
UNUSED = ("NC", "")


class Rail(NamedTuple):
    """A monitored supply: its label and a reader of its watts."""

    label: str
    watts: Callable[[], float]


class Rails(Sensor):
    """The sum of one or more rails; fails when one of them does, rather than leave it out."""

    def __init__(self, name, covers, rails, emulated):
        # type: (str, str, Tuple[Rail, ...], bool) -> None
        self.name = name
        self.covers = covers
        self.emulated = emulated
        self._rails = rails

    def read(self):
        # type: () -> float
        return sum(rail.watts() for rail in self._rails)


def rails(tree):
    # type: (Tree) -> Tuple[Rail, ...]
    """The rails of every monitor, in the order of bus, address and channel, unused ones left out."""
    found = []
    for pattern, reader in LAYOUTS:
        for name in tree.glob("sys/bus/i2c/drivers/" + pattern):
            label = _label(tree, name)
            if label not in UNUSED:
                channel = re.sub(r"\D", "", posixpath.basename(name))
                found.append(Rail(label, functools.partial(reader, tree, posixpath.dirname(name), channel)))
    return tuple(found)


def discover(tree):
    # type: (Tree) -> Found
    """The totals of this Jetson, by the rule above; nothing on other machines."""
    found = rails(tree)
    totals = [Rails("ina3221:" + rail.label, TOTAL_INPUTS[rail.label], (rail,), tree.emulated)
              for rail in found if rail.label in TOTAL_INPUTS]
    if totals:
        return proven(totals)
    if any(rail.label in SUMMED for rail in found):
        return proven([Rails("ina3221:sum", "module", found, tree.emulated)])
    return proven([Rails("ina3221:" + rail.label, "rail", (rail,), tree.emulated) for rail in found])


def _label(tree, name):
    # type: (Tree, str) -> str
    try:
        return tree.text(name)
    except Unavailable:
        return ""


def _old(tree, folder, channel):
    # type: (Tree, str, str) -> float
    return tree.number("%s/in_power%s_input" % (folder, channel)) / 1e3


def _new(tree, folder, channel):
    # type: (Tree, str, str) -> float
    millivolts = tree.number("%s/in%s_input" % (folder, channel))
    return millivolts * tree.number("%s/curr%s_input" % (folder, channel)) / 1e6


LAYOUTS = (("ina3221x/*/iio:device*/rail_name_[0-2]", _old), ("ina3221/*/hwmon/hwmon*/in[1-3]_label", _new))
