"""Ranks send heartbeats while they wait in exchanges, which no thread can interrupt.

A member that was stopped or cut off would otherwise be noticed after the long limit of the
exchange itself.
"""

import threading
import time
from typing import Callable, List, Sequence

from backends.frameworks.process_group import GroupError, ProcessGroup


class RankHeartbeats:
    """Counts up this rank's heartbeats at the first rank, which looks at those of all.

    on_lost: called once, with the reason, when another rank is silent for ``limit_s``.
    """

    def __init__(
        self, group: ProcessGroup, names: Sequence[str], limit_s: float, on_lost: Callable[[str], None]
    ) -> None:
        self._group = group
        self._names = names
        self._limit_s = limit_s
        self._on_lost = on_lost
        self._ended = threading.Event()
        self._counts: List[int] = [0] * len(names)
        self._heard_s = [time.monotonic()] * len(names)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            while not self._ended.wait(self._limit_s / 5.0):
                self._group.beat(self._group.rank)
                silent = self._silent() if self._group.rank == 0 else []
                if silent and not self._ended.is_set():
                    self._on_lost("no heartbeat of %s for %g s" % (", ".join(silent), self._limit_s))
                    return
        except GroupError as error:
            if not self._ended.is_set():
                self._on_lost(str(error))

    def _silent(self) -> List[str]:
        """The ranks whose counts have not changed for the limit."""
        now_s = time.monotonic()
        for rank in range(1, len(self._names)):
            count = self._group.beat(rank, 0)
            if count != self._counts[rank]:
                self._counts[rank], self._heard_s[rank] = count, now_s
        return [self._names[rank] for rank in range(1, len(self._names)) if now_s - self._heard_s[rank] > self._limit_s]

    def close(self) -> None:
        """No more heartbeats, and no more looking."""
        self._ended.set()
