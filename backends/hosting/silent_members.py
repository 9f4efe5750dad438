"""Silent members are dropped: the host ends their connections, and a run of ranks ends.

A server's workers and peers send heartbeats over connections of their own. Ranks count theirs up at
the first rank while they wait in exchanges, which no thread can interrupt. A member that was
stopped or cut off would otherwise be noticed after the long limit of the exchange itself.
"""

import threading
import time
from typing import Callable, Dict, List, Mapping, Sequence

from backends.frameworks.process_group import GroupError, ProcessGroup
from backends.hosting.member_stats import MemberStats
from backends.network import framing
from backends.protocol.events import Emit, Silent


class Heartbeats:
    """When each member was last heard of; ``limit_s``: the silence after which it is lost."""

    def __init__(self, limit_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = limit_s
        self._clock = clock
        self.heard_s: Dict[str, float] = {}

    def hear(self, name: str) -> None:
        """A member shows that it is alive."""
        self.heard_s[name] = self._clock()

    def silent(self) -> Dict[str, float]:
        """Seconds of silence of the members that have been silent for too long."""
        now_s = self._clock()
        silences_s = {name: now_s - heard_s for name, heard_s in list(self.heard_s.items())}
        return {name: silence_s for name, silence_s in silences_s.items() if silence_s > self._limit_s}


class SilentMembers:
    """Drops the members of a host whose heartbeats stop; their work then goes to the others.

    members: of the run, with their connections. drop: ends a connection.
    """

    def __init__(
        self,
        limit_s: float,
        members: Mapping[str, MemberStats],
        drop: Callable[[framing.Connection], None],
        emit: Emit,
    ) -> None:
        self.heartbeats = Heartbeats(limit_s)
        self._members = members
        self._drop = drop
        self._emit = emit

    def drop(self) -> None:
        """Drop those that have been silent for too long."""
        for name, silence_s in self.heartbeats.silent().items():
            connection = self._members[name].connection if name in self._members else None
            if connection is not None and not connection.aborted:
                self._emit(Silent(name, "no heartbeat for %.1f s" % silence_s))
                self._drop(connection)


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
        self._heartbeats = Heartbeats(limit_s)
        for name in names[1:]:
            self._heartbeats.hear(name)
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
        for rank in range(1, len(self._names)):
            count = self._group.beat(rank, 0)
            if count != self._counts[rank]:
                self._counts[rank] = count
                self._heartbeats.hear(self._names[rank])
        return list(self._heartbeats.silent())

    def close(self) -> None:
        """No more heartbeats, and no more looking."""
        self._ended.set()
