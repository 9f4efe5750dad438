"""PowerSGD sends each matrix of a gradient as the product of two thin ones (Vogels et al., 2019).

One step of subspace iteration a message: P <- M Q, orthogonal; Q <- M^T P; what is sent is P Q^T.
Q is kept for the next message (warm start), and M - P Q^T is added to the next gradient. The paper
sums P and Q over all workers on their way; here each message is complete in itself, so that it goes
through a server or to all.
"""

from typing import List, Optional, Sequence, Tuple

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies import low_rank
from backends.strategies.compressors.error_feedback import ErrorFeedback
from backends.strategies.message import LOW_RANK, Message, bytes_of

#: Seed of the first Q.
SEED = 0


class PowerSGD(ErrorFeedback):
    """Matrices of a rank that makes them no smaller, and other arrays, are sent whole.

    Raises ValueError unless rank >= 1.
    """

    sends_exactly = False

    def __init__(self, variables: Sequence[Variable], rank: int = 1) -> None:
        if rank < 1:
            raise ValueError("power-sgd needs a rank of at least 1, not %d" % rank)
        super().__init__(variables)
        shapes = [low_rank.matrix_shape(variable.shape) for variable in self.variables]
        self._entries: List[low_rank.Entry] = [
            (variable.start, rows, columns, rank if _pays(rows, columns, rank) else 0)
            for variable, (rows, columns) in zip(self.variables, shapes)
        ]
        random = np.random.RandomState(SEED)
        self._right = random.normal(size=sum(columns * r for _, _, columns, r in self._entries)).astype(np.float32)
        self._numbers = sum(low_rank.numbers_of(*entry[1:]) for entry in self._entries)

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        gathered, sent = self.accumulate(values), np.empty(self._numbers, np.float32)
        at = kept = 0
        for start, rows, columns, rank in self._entries:
            part = gathered[start : start + rows * columns]
            room = sent[at : at + low_rank.numbers_of(rows, columns, rank)]
            at += room.size
            if rank:
                right = self._right[kept : kept + columns * rank].reshape(columns, rank)
                kept += columns * rank
                left = _iterate(part.reshape(rows, columns), right)
                room[: rows * rank], room[rows * rank :] = left.ravel(), right.ravel()
            else:
                room[:] = part
                part[:] = 0
        return Message(LOW_RANK, self.size, (np.array(self._entries, np.uint32).reshape(-1, 4), sent))

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        return bytes_of(LOW_RANK, self.size, len(self._entries), self._numbers)

    def state(self) -> Tuple[np.ndarray, ...]:
        return super().state() + (self._right.copy(),)

    def restore(self, state: Sequence[np.ndarray]) -> None:
        if not len(state) or state[-1].shape != self._right.shape:
            raise ValueError("PowerSGD keeps %d numbers of thin matrices besides its residual" % self._right.size)
        super().restore(state[:-1])
        self._right[:] = state[-1]


def _pays(rows: int, columns: int, rank: int) -> bool:
    return rank < min(rows, columns) and low_rank.numbers_of(rows, columns, rank) < rows * columns


def _iterate(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """P of M, (rows, columns). Q, (columns, rank), becomes the next, and M loses what is sent."""
    left = np.linalg.qr(matrix @ right)[0].astype(np.float32)
    right[:] = matrix.T @ left
    matrix -= left @ right.T
    return np.ascontiguousarray(left)
