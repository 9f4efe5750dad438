"""The host of a run keeps figures and buffers for each member."""

import threading
from typing import Optional

import numpy as np

from backends.frameworks.base import Arrays
from backends.network import framing
from backends.protocol.events import MemberProgress


class MemberStats:
    """One member's figures and buffers, which survive its connections."""

    def __init__(self) -> None:
        self.serving = threading.Lock()  # held while one of its connections is served
        self.connection: Optional[framing.Connection] = None
        self.gradients = np.empty(0, np.float32)  # (parameters,)
        self.state = np.empty(0, np.float32)  # (state,)
        self.own: Arrays = ()  # what it keeps between steps
        self.steps = 0
        self.loss: Optional[float] = None
        self.staleness = 0
        self.bytes = 0  # sent and received

    def count_step(self, loss: float, staleness: int, steps: int = 1) -> None:
        """Count a step; staleness: updates made since its weights were pulled.

        steps: the number that it stands for, each with this staleness.
        """
        self.steps += steps
        self.staleness += staleness * steps
        self.loss = loss if self.loss is None else 0.9 * self.loss + 0.1 * loss

    def count_bytes(self, connection: framing.Connection) -> None:
        """Add the connection's byte counts to the member's, and reset them."""
        self.bytes += connection.sent_bytes + connection.received_bytes
        connection.sent_bytes = connection.received_bytes = 0

    def summary(self) -> MemberProgress:
        """One row of the live table."""
        staleness = self.staleness / self.steps if self.steps else None
        return MemberProgress(self.steps, self.loss, self.bytes, staleness, self.connection is not None)
