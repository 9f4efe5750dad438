"""Processor time is lost to a hypervisor, which steals it, and to a quota, which withholds it."""

from typing import List, NamedTuple, Optional, Tuple

from profilers import cgroups
from profilers.file_tree import FileTree, Unavailable

#: How many of all.
Counted = Tuple[int, int]

#: The place of stolen time among the numbers of a line of /proc/stat.
STOLEN = 7


class LostShares(NamedTuple):
    """Shares of processor time; each is None where the machine does not tell.

    stolen: of the time of all processors, what a hypervisor gave to other machines.
    throttled: of the periods of the process's quotas, those that ended with the quota used up. That
        of the cgroup, among the process's own and their ancestors, where it is largest.
    """

    stolen: Optional[float]
    throttled: Optional[float]


class LostTime:
    """What is lost from when it is made, by turns."""

    def __init__(self, tree: FileTree) -> None:
        self._tree = tree
        self._groups = [folder for folder, _ in cgroups.limiting(tree, "cpu")]
        self._ticks, self._periods = self._read_ticks(), self._read_periods()

    def turn(self) -> LostShares:
        """What was lost since it was made, or since the turn before."""
        ticks, periods = self._read_ticks(), self._read_periods()
        found = self._shares(ticks, periods)
        self._ticks, self._periods = ticks, periods
        return found

    def so_far(self) -> LostShares:
        """The same without a turn."""
        return self._shares(self._read_ticks(), self._read_periods())

    def _shares(self, ticks: Optional[Counted], periods: List[Optional[Counted]]) -> LostShares:
        throttled = [_share(before, after) for before, after in zip(self._periods, periods)]
        known = [share for share in throttled if share is not None]
        return LostShares(_share(self._ticks, ticks), max(known, default=None))

    def _read_ticks(self) -> Optional[Counted]:
        try:
            return parse_stolen(self._tree.text("proc/stat"))
        except (Unavailable, ValueError):
            return None

    def _read_periods(self) -> List[Optional[Counted]]:
        found: List[Optional[Counted]] = []
        for folder in self._groups:
            try:
                found.append(parse_throttled(self._tree.text(folder + "/cpu.stat")))
            except (Unavailable, ValueError):
                found.append(None)
        return found


def parse_stolen(text: str) -> Optional[Counted]:
    """(stolen, all) ticks of all processors, from /proc/stat; None where it tells no stolen ones.

    Raises ValueError for what is no number.
    """
    name, *values = text.splitlines()[0].split() if text else [""]
    if name != "cpu" or len(values) <= STOLEN:
        return None
    numbers = [int(value) for value in values[: STOLEN + 1]]  # guests, which follow, are in user already
    return numbers[STOLEN], sum(numbers)


def parse_throttled(text: str) -> Optional[Counted]:
    """(used up, all) periods of a quota, from cpu.stat of either version; None without a quota.

    Raises ValueError for what is no number.
    """
    rows = dict(line.split()[:2] for line in text.splitlines() if len(line.split()) > 1)
    if "nr_periods" not in rows or "nr_throttled" not in rows:
        return None
    return int(rows["nr_throttled"]), int(rows["nr_periods"])


def _share(before: Optional[Counted], after: Optional[Counted]) -> Optional[float]:
    """The part in the whole of what was counted between two reads; None where nothing was."""
    if before is None or after is None or after[1] <= before[1]:
        return None
    return min(1.0, max(0.0, (after[0] - before[0]) / float(after[1] - before[1])))
