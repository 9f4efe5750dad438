"""Probes of a link share their error, their limits of silence, and how they take a connection."""

import math
import socket
import time
from typing import Any, Callable

#: Between two figures of bytes/s.
INTERVAL_S = 0.1
#: Longest silence of a peer, and longest wait for its connection, before the probe fails.
SILENCE_LIMIT_S = 5.0
_POLL_S = 0.1


class LinkError(Exception):
    """A probe of a link failed."""


def accept(listener: socket.socket, limit_s: float, should_stop: Callable[[], bool]) -> socket.socket:
    """The next connection to a listening socket. Raises LinkError at the limit or when stopped."""
    deadline = time.monotonic() + limit_s
    listener.settimeout(_POLL_S)
    while time.monotonic() < deadline and not should_stop():
        try:
            return listener.accept()[0]
        except socket.timeout:
            continue
    raise LinkError("nobody connected to port %d" % listener.getsockname()[1])


def checked_rate(rate: Any) -> float:
    """A rate as a peer or a tool told it, in bytes/s. Raises ValueError where it cannot be one."""
    if not 0.0 <= float(rate) < math.inf:
        raise ValueError("no rate: %r" % rate)
    return float(rate)
