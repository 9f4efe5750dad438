"""Caches of devices: what planner has left in them, and its removal."""

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from backends.protocol.events import CacheEntry, CacheFolder
from backends.protocol.orders import FindCache, ListCache, RemoveEntries
from planner.agents.pool import AgentPool, in_parallel
from planner.errors import PlannerError
from planner.fleet.device import Device, Interpreter

#: The operator's machine, which has a cache where devices of the fleet are parts of it.
THIS_MACHINE = "this machine"
#: Limit for looking through a folder or removing one; a board's card is slow.
ANSWER_S = 300.0


class Cache(NamedTuple):
    """What planner has left in one folder. devices: those that share it, at least one."""

    devices: tuple[str, ...]
    folder: str
    entries: tuple[CacheEntry, ...]

    @property
    def removable(self) -> tuple[CacheEntry, ...]:
        """What no run under way uses."""
        return tuple(entry for entry in self.entries if not entry.in_use)


class CleanedCache(NamedTuple):
    """A cache from which was removed what could be. kept: why an entry is still there, by name."""

    cache: Cache
    kept: Mapping[str, str]

    @property
    def removed(self) -> tuple[CacheEntry, ...]:
        return tuple(entry for entry in self.cache.removable if entry.name not in self.kept)

    @property
    def problems(self) -> list[str]:
        """A line for each entry that is still there."""
        device, folder = self.cache.devices[0], self.cache.folder
        return [f"{device}: {folder}/{name} is still there: {reason}" for name, reason in self.kept.items()]


class Caches:
    """The caches of devices that can be reached.

    errors: why a device was not reached, or was lost, by name.
    """

    def __init__(self, pool: AgentPool, devices: Iterable[Device]) -> None:
        listed = tuple(devices)
        pool.open(listed)
        self._agents = {device.name: pool.agents[device.name] for device in listed if device.name in pool.agents}
        self.errors: dict[str, PlannerError] = pool.errors

    def find(self) -> list[Cache]:
        """What is in each cache, named once however many devices share it."""
        folders: dict[str, CacheFolder] = self._of_each(self._agents, lambda name: FindCache())
        sharing: dict[str, list[str]] = {}
        for name, folder in folders.items():
            sharing.setdefault(folder.identity, []).append(name)
        listed = self._of_each([names[0] for names in sharing.values()], lambda name: ListCache())
        return [
            Cache(tuple(names), folders[names[0]].path, listed[names[0]])
            for names in sharing.values()
            if names[0] in listed
        ]

    def remove(self, caches: Iterable[Cache]) -> list[CleanedCache]:
        """Remove what no run uses, and the agents that do so.

        A cache whose device is lost meanwhile is left out.
        """
        by_name = {cache.devices[0]: cache for cache in caches}
        removed = self._of_each(
            by_name, lambda name: RemoveEntries(tuple(entry.name for entry in by_name[name].removable))
        )
        return [CleanedCache(by_name[name], kept) for name, kept in removed.items()]

    def _of_each(self, names: Iterable[str], order: Callable[[str], Any]) -> dict[str, Any]:
        """The answers to orders given all at once, by device; a failure goes into ``errors``."""
        answers: dict[str, Any] = {}

        def work(name: str) -> None:
            try:
                answers[name] = self._agents[name].call(order(name), ANSWER_S)
            except PlannerError as error:
                self.errors[name] = error

        in_parallel(names, work)
        return {name: answers[name] for name in names if name in answers}


def this_machine() -> Device:
    """The operator's own machine as a device."""
    return Device(name=THIS_MACHINE, interpreter=Interpreter(sys.executable))
