"""Ring all-reduce sums chunks of gradients around the ring, then distributes the sums."""

import itertools
from typing import Optional

from backends.frameworks.base import OptimizerSettings
from backends.peers.exchanges.base import Exchange
from backends.strategies import allreduce
from backends.strategies.aggregation_rules import FACTORS
from backends.strategies.message import WHOLE


class RingAllReduce(Exchange):
    """Forwards chunks while others are in transit; applies the sum when it is complete."""

    def step(self, step: int, batch: int, optimizer: OptimizerSettings, budget_s: Optional[float] = None) -> None:
        parts, n = self.parts, len(self.names)
        gradients = parts.replica.gradients
        gradients *= FACTORS[parts.strategy.aggregation](batch, batch, parts.batch, n)
        if n > 1:
            self._sum_gradients(n, step)
        parts.local_update.apply(parts.replica.weights, gradients, optimizer)

    def _sum_gradients(self, n: int, step: int) -> None:
        gradients, mailbox = self.parts.replica.gradients, self.parts.mailbox
        encode = WHOLE[self.parts.strategy.compressor.name]
        after, before = self.names[(self.rank + 1) % n], self.names[self.rank - 1]
        count = itertools.count()  # chunks are numbered in the order in which they are sent

        def send(start: int, end: int) -> None:
            message = allreduce.departing(gradients[start:end], encode)
            mailbox.send(after, step, message, kind=str(next(count)))

        for start, end in allreduce.departures(self.rank, n, gradients.size):
            send(start, end)
        for at, piece in enumerate(allreduce.arrivals(self.rank, n, gradients.size)):
            allreduce.absorb(gradients, piece, mailbox.next(before, step, str(at)).message)
            if piece.sent_on:
                send(piece.start, piece.end)
        mailbox.flush()
