"""Members that make rounds of local steps take the mean of their states, such as batch statistics.

An outer step is for trained weights only: momentum would carry a variance below zero.
"""

from typing import Dict, Sequence, Tuple

import numpy as np

from backends.network.mailbox import Envelope, Interrupted, Mailbox
from backends.strategies.message import dense

STATE_KIND = "state"


class StateMean:
    """Sends a member's state to all others, and takes the mean of those that have arrived.

    Each counts by the samples of its round.

    Nobody waits: on its connection a state comes before the change of its round. States of a round
    that could not be exchanged are used nevertheless, for no state depends on the outer step.
    """

    def __init__(self, mailbox: Mailbox, state: np.ndarray) -> None:
        self._mailbox = mailbox
        self._state = state
        self._others: Dict[str, Tuple[np.ndarray, int]] = {}

    def send(self, names: Sequence[str], step: int, samples: int) -> None:
        """Send this member's state to the others of its epoch. Raises Interrupted."""
        self._others = {name: self._others[name] for name in names if name in self._others}
        for name in names:
            if self._state.size and name != self._mailbox.name:
                self._mailbox.send(name, step, dense(self._state.copy()), kind=STATE_KIND, batch=samples)

    def merge(self, samples: int) -> None:
        """Set the state to the mean of the last states of all members; samples: of this one's."""
        try:
            arrived = self._mailbox.take(_is_state, 0) if self._state.size else []
        except Interrupted:  # the next round brings others
            return
        self._others.update((each.sender, (each.message.arrays[0], each.head.batch)) for each in arrived)
        total = float(samples + sum(count for _, count in self._others.values()))
        self._state *= samples / total
        for state, count in self._others.values():
            self._state += np.float32(count / total) * state


def _is_state(envelope: Envelope) -> bool:
    return envelope.head.kind == STATE_KIND
