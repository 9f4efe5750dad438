"""Members that make rounds of local steps take the mean of their states, such as batch statistics.

An outer step is for trained weights only: momentum would carry a variance below zero.
"""

from typing import Dict, Sequence, Tuple

import numpy as np

from backends.network.mailbox import Envelope, Interrupted, Mailbox
from backends.strategies.message import DENSE, dense

STATE_KIND = "state"


class StateMean:
    """Sends a member's state to all others, and takes the mean of those that have arrived.

    Each counts by the samples of its round. Nobody waits: the states are sent before the changes of
    their round, and those that have come when it ends count. A state larger than the trained
    weights, such as a frozen part of a Keras model, stays where it is.
    """

    def __init__(self, mailbox: Mailbox, state: np.ndarray, weights: int) -> None:
        self._mailbox = mailbox
        self._state = state
        self._travels = 0 < state.size <= weights
        self._others: Dict[str, Tuple[np.ndarray, int]] = {}

    def send(self, names: Sequence[str], step: int, samples: int) -> None:
        """Send this member's state to the others of its epoch. Raises Interrupted."""
        self._others = {name: self._others[name] for name in names if name in self._others}
        for name in names:
            if self._travels and name != self._mailbox.name:
                self._mailbox.send(name, step, dense(self._state.copy()), kind=STATE_KIND, batch=samples)

    def merge(self, samples: int) -> None:
        """Set the state to the mean of the last states of all members; samples: of this one's."""
        try:
            arrived = self._mailbox.take(self._fits, 0) if self._travels else []
        except Interrupted:  # the next round brings others
            return
        self._others.update((each.sender, (each.message.arrays[0], each.head.batch)) for each in arrived)
        if not self._others:
            return
        total = float(samples + sum(count for _, count in self._others.values()))
        self._state *= samples / total
        for state, count in self._others.values():
            self._state += np.float32(count / total) * state

    def _fits(self, envelope: Envelope) -> bool:
        """Whether it is a state of the run's model, of a round that was made."""
        head, message = envelope.head, envelope.message
        return head.kind == STATE_KIND and head.batch > 0 and (message.kind, message.size) == (DENSE, self._state.size)
