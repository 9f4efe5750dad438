"""The membership of a run lists its present members and tells observers when it changes.

``run_host`` notices silent members and drops them; then the step queue, an observer, gives the work
items that they held to others.
"""

import abc
from typing import Iterable, List, Tuple


class MembershipObserver(abc.ABC):
    """A part of a run's state that is notified when a member joins or leaves."""

    @abc.abstractmethod
    def set_members(self, names: Tuple[str, ...]) -> None:
        """Receive all present members, sorted by name."""


class Membership:
    """Notifies every observer of each change. Not thread-safe: its owner holds the run's lock."""

    def __init__(self, *observers: MembershipObserver) -> None:
        self.names: Tuple[str, ...] = ()
        self._observers: List[MembershipObserver] = list(observers)

    def add_observer(self, observer: MembershipObserver) -> None:
        """Add an observer, which is notified from the next change on."""
        self._observers.append(observer)

    def join(self, name: str) -> None:
        """Add a member; one that returns must have left before."""
        self.replace({*self.names, name})

    def leave(self, name: str) -> None:
        """Remove a member; a name that is no member is ignored."""
        self.replace(set(self.names) - {name})

    def replace(self, names: Iterable[str]) -> None:
        """Make these the members, all at once."""
        self.names = tuple(sorted(names))
        for observer in self._observers:
            observer.set_members(self.names)
