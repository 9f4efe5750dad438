"""Ring all-reduce sums chunks of gradients around the ring, then distributes the sums."""

import itertools
from typing import Optional

from backends.frameworks.optimizer import OptimizerSettings
from backends.peers.exchanges.base import Exchange
from backends.strategies import allreduce
from backends.strategies.aggregation_rules import FACTORS, WITH_MEAN
from backends.strategies.message import WHOLE


class RingAllReduce(Exchange):
    """Forwards chunks while others are in transit; applies the sum when it is complete."""

    def step(self, step: int, batch: int, optimizer: OptimizerSettings, budget_s: Optional[float] = None) -> None:
        parts, n = self.parts, len(self.names)
        gradients, aggregation = parts.replica.gradients, parts.strategy.aggregation
        gradients *= FACTORS[aggregation](batch, parts.batch, parts.batch, n)
        samples = self._sum_gradients(n, step, batch) if n > 1 else batch
        if aggregation in WITH_MEAN:  # which is known only now
            gradients *= n * parts.batch / float(samples)
        parts.local_update.apply(parts.replica.weights, gradients, optimizer)

    def _sum_gradients(self, n: int, step: int, batch: int) -> int:
        """Replace the gradients by the sum of all members'; return the samples of all.

        Samples are counted on the way: each message tells those behind the values that it holds.
        """
        gradients, mailbox = self.parts.replica.gradients, self.parts.mailbox
        encode = WHOLE[self.parts.strategy.compressor.name]
        after, before = self.names[(self.rank + 1) % n], self.names[self.rank - 1]
        count = itertools.count()  # chunks are numbered in the order in which they are sent

        def send(start: int, end: int, samples: int) -> None:
            message = allreduce.departing(gradients[start:end], encode)
            mailbox.send(after, step, message, kind=str(next(count)), batch=samples)

        most = batch
        for start, end in allreduce.departures(self.rank, n, gradients.size):
            send(start, end, batch)
        for at, piece in enumerate(allreduce.arrivals(self.rank, n, gradients.size)):
            envelope = mailbox.next(before, step, str(at))
            allreduce.absorb(gradients, piece, envelope.message)
            samples = envelope.head.batch + (batch if piece.adds else 0)
            most = max(most, samples)
            if piece.sent_on:
                send(piece.start, piece.end, samples)
        mailbox.flush()
        return most
