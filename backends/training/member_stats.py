"""What a run's server knows of each worker."""

import threading
import time
from typing import Any, Dict, Optional, Tuple

import numpy as np

from backends.network import framing


class MemberStats:
    """One worker. Its counts survive its connections, of which ``turn`` lets one be served at a time."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.connection: Optional[framing.Connection] = None
        self.heard = time.monotonic()
        self.gradients = np.empty(0, np.float32)
        self.state = np.empty(0, np.float32)
        self.kept: Tuple[np.ndarray, ...] = ()
        self.steps = 0
        self.loss: Optional[float] = None
        self.staleness = 0
        self.bytes = 0

    def learnt(self, loss: float, staleness: int) -> None:
        """An update was made with its gradient, which ``staleness`` other updates had overtaken."""
        self.steps += 1
        self.staleness += staleness
        self.loss = loss if self.loss is None else 0.9 * self.loss + 0.1 * loss

    def count(self, connection: framing.Connection) -> None:
        """Move the connection's byte counts here."""
        self.bytes += connection.sent_bytes + connection.received_bytes
        connection.sent_bytes = connection.received_bytes = 0

    def summary(self) -> Dict[str, Any]:
        """One row of the live table; ``loss`` is smoothed, ``staleness`` a mean, ``bytes`` go both ways."""
        return {
            "steps": self.steps,
            "loss": self.loss,
            "bytes": self.bytes,
            "staleness": self.staleness / self.steps if self.steps else None,
            "connected": self.connection is not None,
        }
