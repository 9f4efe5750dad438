"""The sum of all gradients, by a ring all-reduce."""

import itertools
from typing import Any

from backends.frameworks.base import OptimizerSettings
from backends.peers.exchanges.base import Exchange
from backends.strategies import allreduce
from backends.strategies.aggregation import FACTORS
from backends.strategies.message import WHOLE


class RingAllReduce(Exchange):
    """Pieces come and go on while others are on their way; the sum is applied when it is whole."""

    def step(self, step: int, batch: int, optimiser: OptimizerSettings, budget_s: Any = None) -> None:
        n, gradients = len(self.names), self.means.replica.gradients
        gradients *= FACTORS[self.means.strategy.aggregation](batch, batch, self.means.batch, n)
        if n > 1:
            self._go_round(n, step)
        self.means.local.apply(self.means.replica.weights, gradients, optimiser)

    def _go_round(self, n: int, step: int) -> None:
        gradients, links = self.means.replica.gradients, self.means.links
        encode = WHOLE[self.means.strategy.compressor.name]
        after, before = self.names[(self.rank + 1) % n], self.names[self.rank - 1]
        count = itertools.count()  # pieces are told apart by the order in which they leave

        def send(start: int, end: int) -> None:
            links.send(after, step, allreduce.departing(gradients[start:end], encode), kind=str(next(count)))

        for start, end in allreduce.departures(self.rank, n, gradients.size):
            send(start, end)
        for at, piece in enumerate(allreduce.arrivals(self.rank, n, gradients.size)):
            allreduce.absorb(gradients, piece, links.next(before, step, str(at)).message)
            if piece.sent_on:
                send(piece.start, piece.end)
        links.flush()
