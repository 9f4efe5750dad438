"""The ranks of a run meet every half a second; there they agree on whether to end it together."""

import math
import time
from typing import NamedTuple, Optional, Sequence

import numpy as np

from backends.frameworks.process_group import ProcessGroup
from backends.hosting.run_clock import PROGRESS_INTERVAL_S

#: What a rank says of itself at a meeting.
GOES_ON, STOPS, DIVERGED = range(3)
#: Most rounds between two meetings: the time of a round may change.
MOST_ROUNDS = 1000


class MeetingOutcome(NamedTuple):
    """What a meeting has found, the same on all ranks.

    name: of the rank that tells most: one that diverged, else one that stops.
    says: what it says; step, loss: where it diverged.
    wanted: samples of a step that each rank wants from now on, (ranks,).
    saves: whether the first rank's clock asks for a checkpoint.
    """

    name: str
    says: int
    step: int
    loss: float
    wanted: np.ndarray
    saves: bool


class RankMeetings:
    """One rank's part in the meetings; losses: of all ranks, at the last one."""

    def __init__(self, group: ProcessGroup, names: Sequence[str]) -> None:
        self._group = group
        self._names = names
        self._says = GOES_ON
        self._bad_step, self._bad_loss = 0, 0.0  # where its loss was not finite first
        self._rounds_to_next = 1
        self.losses: Sequence[float] = (math.nan,) * group.size
        self.begin()

    def begin(self) -> None:
        """Count rounds from now on."""
        self._met_s, self.rounds = time.monotonic(), 0

    def stop(self, diverged: bool = False) -> None:
        """Ask all ranks to end the run at the next meeting."""
        self._says = self._says or (DIVERGED if diverged else STOPS)

    def diverge(self, step: int, loss: float) -> None:
        """A loss is not finite; the first one counts."""
        if self._says != DIVERGED:
            self._bad_step, self._bad_loss = step, loss

    def is_due(self) -> bool:
        """Count a round; whether all meet after it."""
        self.rounds += 1
        return self.rounds >= self._rounds_to_next

    def meet(self, loss: Optional[float], wanted: int, saves: bool = False) -> MeetingOutcome:
        """Tell the others how this rank is, and hear it of them.

        saves: whether a checkpoint is due; that of the first rank counts.
        """
        now_s = time.monotonic()
        round_s = max(1e-6, (now_s - self._met_s) / max(1, self.rounds))
        rounds = min(MOST_ROUNDS, max(1, int(PROGRESS_INTERVAL_S / round_s)))
        loss = self._bad_loss if self._says == DIVERGED else loss
        row = (self._says, math.nan if loss is None else loss, self._bad_step, rounds, wanted, saves)
        rows = self._group.gather(row)
        self.losses = tuple(rows[:, 1])
        self._rounds_to_next = int(rows[0, 3])  # the same number on all ranks
        self._met_s, self.rounds = now_s, 0
        # The first loss that is not finite tells why: its gradient spoils the weights of all.
        name, found = min(zip(self._names, rows), key=lambda each: (-each[1][0], each[1][2]))
        return MeetingOutcome(name, int(found[0]), int(found[2]), float(found[1]), rows[:, 4], bool(rows[0, 5]))
