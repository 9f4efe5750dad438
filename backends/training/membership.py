"""The membership of a run: who takes part now, and the parts of a coordinator that depend on it."""

import abc
from typing import Iterable, List, Tuple


class MembershipObserver(abc.ABC):
    """A part of a coordinator that is told whenever somebody joins or leaves."""

    @abc.abstractmethod
    def set_members(self, names: Tuple[str, ...]) -> None:
        """Take note of all members there are now, sorted by name."""


class Membership:
    """Tells every observer of each change. Not thread-safe: its owner holds the run's lock."""

    def __init__(self, *observers: MembershipObserver) -> None:
        self.names: Tuple[str, ...] = ()
        self._observers: List[MembershipObserver] = list(observers)

    def add_observer(self, observer: MembershipObserver) -> None:
        """Tell one more part, from the next change on."""
        self._observers.append(observer)

    def join(self, name: str) -> None:
        """Add a member; one that comes back must have left before."""
        self.replace({*self.names, name})

    def leave(self, name: str) -> None:
        """Remove a member; a name that is no member is ignored."""
        self.replace(set(self.names) - {name})

    def replace(self, names: Iterable[str]) -> None:
        """Make these the members, all at once."""
        self.names = tuple(sorted(names))
        for observer in self._observers:
            observer.set_members(self.names)
