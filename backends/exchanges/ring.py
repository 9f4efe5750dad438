"""The sum of all gradients, by a ring all-reduce."""

import itertools
from typing import Any

from backends.base import Optimiser
from backends.exchanges.base import Exchange
from backends.strategies import allreduce
from backends.strategies.merging import FACTORS
from backends.strategies.message import dense


class Ring(Exchange):
    """Pieces come and go on while others are on their way; the sum is applied when it is whole."""

    def step(self, step, batch, optimiser, budget_s=None):
        # type: (int, int, Optimiser, Any) -> None
        n, gradients, links = len(self.names), self.means.replica.gradients, self.means.links
        gradients *= FACTORS[self.means.merge](batch, batch, self.means.batch, n)
        if n > 1:
            after, before = self.names[(self.rank + 1) % n], self.names[self.rank - 1]
            count = itertools.count()  # pieces are told apart by the order in which they leave
            for start, end in allreduce.departures(self.rank, n, gradients.size):
                links.send(after, step, dense(gradients[start:end]), kind=str(next(count)))
            for at, piece in enumerate(allreduce.arrivals(self.rank, n, gradients.size)):
                coming = links.next(before, step, str(at))
                allreduce.absorb(gradients, piece, coming.message.arrays[0])
                if piece.sent_on:
                    links.send(after, step, dense(gradients[piece.start : piece.end]), kind=str(next(count)))
            links.flush()
        self.means.local.apply(self.means.replica.weights, gradients, optimiser)
