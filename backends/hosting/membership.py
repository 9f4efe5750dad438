"""The membership of a run lists its present members and tells observers when it changes.

``silent_members`` drops silent members; then the step queue, an observer, gives the work
items that they held to others.
"""

from typing import Callable, Iterable, List, Tuple

#: Is called with the names of all present members, sorted, when one joins or leaves.
Observer = Callable[[Tuple[str, ...]], None]


class Membership:
    """Notifies every observer of each change. Not thread-safe: its owner holds the run's lock."""

    def __init__(self, *observers: Observer) -> None:
        self.names: Tuple[str, ...] = ()
        self._observers: List[Observer] = list(observers)

    def add_observer(self, observer: Observer) -> None:
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
            observer(self.names)
