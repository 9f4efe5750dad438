"""A run watcher records the events of a run while it goes on."""

import time
from collections.abc import Callable, Mapping

from backends.protocol.events import MemberProgress, Progress
from planner.agents.call import Event
from planner.train.events import Started, TimeOver

from .network_cards import Cards, Count, Sample, sent, traffic
from .records import Traffic

#: Payload is counted by whole steps; before as many of each worker the count says little.
WARM_STEPS = 2


class RunWatcher:
    """Reads the cards at the beginning, with reports of progress, and when training is over.

    A report counts when the slowest worker has just ended a step, for the payload is counted then:
    at the end as at the beginning of what is compared, as little is on its way.

    left_out: a worker whose exchange uses no card. ``card_bytes``: sent by all cards while it
    trained.
    """

    def __init__(self, cards: Cards | None, left_out: str, on_start: Callable[[], None]) -> None:
        self._cards = cards
        self._left_out = left_out
        self._on_start = on_start
        self._began_s = 0.0
        self._start: dict[str, Count] = {}
        self._fewest = WARM_STEPS - 1
        self._first: Sample | None = None
        self._last: Sample | None = None
        self.card_bytes: int | None = None

    def on_event(self, _: str, event: Event) -> None:
        """An event of the run."""
        if isinstance(event, Started):
            self._began_s = time.monotonic()
            self._on_start()
        if self._cards is None:
            return
        if isinstance(event, Started):
            self._start = self._cards.read()
        elif isinstance(event, Progress) and self.card_bytes is None:
            self._note(event.workers, self._cards)
        elif isinstance(event, TimeOver):
            self.end()

    def end(self) -> None:
        """Training is over; the first call counts."""
        if self._cards is not None and self.card_bytes is None:
            self.card_bytes = sent(self._start, self._cards.read())

    def _note(self, workers: Mapping[str, MemberProgress], cards: Cards) -> None:
        fewest = min((worker.steps for worker in workers.values()), default=0)
        if fewest <= self._fewest:
            return
        self._fewest = fewest
        payload = sum(worker.bytes for name, worker in workers.items() if name != self._left_out)
        sample = Sample(time.monotonic() - self._began_s, payload, cards.read())
        if self._first is None:
            self._first = sample
        else:
            self._last = sample

    def traffic(self) -> Traffic | None:
        """Between the first and the last report; None where there were not two."""
        if self._cards is None or self._first is None or self._last is None:
            return None
        return traffic(self._first, self._last, self._cards.rates)
