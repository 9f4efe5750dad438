"""Heartbeats travel on a connection of their own, so that both ends notice a lost other.

``hosting.silent_members`` drops members that are silent for too long.
"""

import threading
from typing import Callable

from backends.network import framing
from backends.protocol.frames import Heartbeat, HeartbeatAnswer, HeartbeatHello

#: Seconds between heartbeats at most, however long a silence may be: who waits for another learns
#: from an answer that the run is over, before the host waits no longer (``FINISH_LIMIT_S``).
MOST_INTERVAL_S = 2.0


class HeartbeatSender:
    """The member's side: sends heartbeats on a connection of their own.

    ``on_lost`` is called once when they are no longer answered, ``on_answer`` with the
    epoch in every answer.
    """

    def __init__(
        self,
        connection: framing.Connection,
        limit_s: float,
        on_lost: Callable[[str], None],
        on_answer: Callable[[int], None] = lambda epoch: None,
    ) -> None:
        self._connection = connection
        self._limit_s = limit_s
        self._on_lost = on_lost
        self._on_answer = on_answer
        self._ended = threading.Event()
        connection.settimeout(limit_s)
        connection.send(HeartbeatHello())
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        try:
            while not self._ended.wait(min(MOST_INTERVAL_S, self._limit_s / 5.0)):
                self._connection.send(Heartbeat())
                self._on_answer(self._connection.receive(HeartbeatAnswer).epoch)
        except framing.WireError as error:
            if not self._ended.is_set():
                self._on_lost(str(error))
        finally:
            self._connection.close()

    def close(self) -> None:
        """No more heartbeats."""
        self._ended.set()


def answer_heartbeats(connection: framing.Connection, beat: Callable[[str], int]) -> None:
    """The host's side: answer each heartbeat with the epoch that ``beat(name)`` returns.

    Returns when the connection ends.
    """
    try:
        while True:
            connection.receive(Heartbeat)
            connection.send(HeartbeatAnswer(beat(connection.peer)))
    except framing.WireError:
        return  # the host drops members that are silent
