"""What the workers of a run tell of themselves."""

from collections.abc import Iterable

from backends.training.step import TimeSpent
from planner.agents.client import Event


class Telemetry:
    """By worker: what its sensors said in each of its ``windows``; ``built_s``, the seconds its model took to build;
    ``spent`` in each of its lives, the fields of backends.worker.Spent in their order; and what its ``senders`` tell at
    the end (Sender.told, such as the CNC ratio).
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.windows: dict[str, list[Event]] = {name: [] for name in names}
        self.spent: dict[str, list[list[float]]] = {name: [] for name in self.windows}
        self.built_s: dict[str, float] = {}
        self.senders: dict[str, Event] = {}

    def begin_life(self, name: str) -> None:
        """What this worker tells from now on is of a new life."""
        self.spent[name].append(list(TimeSpent(0, 0.0, 0.0, 0.0)))

    def add(self, name: str, event: Event) -> None:
        """Keep what an event says of its worker's work, if it does."""
        if "window" in event:
            self.windows[name].append(event["window"])
            self.spent[name][-1:] = [list(event["spent"].values())]
        elif "built_s" in event:
            self.built_s[name] = event["built_s"]
        elif "worked" in event:
            self.senders[name] = event["worked"]["sender"]

    def stepped(self, name: str) -> bool:
        """Whether this worker has made a step in its present life."""
        return bool(self.spent[name]) and self.spent[name][-1][0] > 0

    def ever_stepped(self, name: str) -> bool:
        """Whether this worker has made a step in any of its lives."""
        return any(life[0] for life in self.spent[name])
