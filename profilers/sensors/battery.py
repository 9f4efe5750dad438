"""A laptop's batteries while it runs on them: what they give is what the whole machine takes, its display included.

/sys/class/power_supply/*/ with type Battery: power_now in uW, or current_now in uA times voltage_now in uV; some
drivers count current out of the battery as negative. Most firmware renews these seldom. A battery may
help out a weak supply of type Mains: its watts are then not those of the machine.
"""

from typing import Sequence

from profilers.file_tree import FileTree, Unavailable
from profilers.sensors.base import Found, Sensor, proven

ON_MAINS = "it runs on mains power"


class Batteries(Sensor):
    """The watts of all batteries that discharge, while none of the ``mains`` supplies is online."""

    name = "battery"
    covers = "board"
    patience_s = 60.0

    def __init__(self, tree: FileTree, folders: Sequence[str], mains: Sequence[str]) -> None:
        self.emulated = tree.emulated
        self._tree = tree
        self._folders = tuple(folders)
        self._mains = tuple(mains)

    def read(self) -> float:
        discharging = [folder for folder in self._folders if self._tree.text(folder + "/status") == "Discharging"]
        if not discharging or any(_text(self._tree, folder + "/online") == "1" for folder in self._mains):
            raise Unavailable(ON_MAINS)
        return sum(watts(self._tree, folder) for folder in discharging)


def watts(tree: FileTree, folder: str) -> float:
    """What a battery gives. Raises Unavailable."""
    try:
        return abs(tree.number(folder + "/power_now")) / 1e6
    except Unavailable:
        return abs(tree.number(folder + "/current_now")) * tree.number(folder + "/voltage_now") / 1e12


def discover(tree: FileTree) -> Found:
    """One sensor for all batteries of the machine; nothing where it has none."""
    supplies = tree.glob("sys/class/power_supply/*")
    folders = [folder for folder in supplies if _feeds_machine(tree, folder)]
    mains = [folder for folder in supplies if _text(tree, folder + "/type") == "Mains"]
    return proven([Batteries(tree, folders, mains)] if folders else [])


def _feeds_machine(tree: FileTree, folder: str) -> bool:
    """Whether this is a battery, and not that of a mouse or a pen."""
    return _text(tree, folder + "/type") == "Battery" and _text(tree, folder + "/scope") != "Device"


def _text(tree: FileTree, name: str) -> str:
    try:
        return tree.text(name)
    except Unavailable:
        return ""
