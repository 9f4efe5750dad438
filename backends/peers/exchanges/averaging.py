"""Weight averaging averages each segment with one peer (Crossover-SGD, Yeo et al., Alg. 1)."""

from typing import Optional

from backends.frameworks.optimizer import OptimizerSettings
from backends.peers.exchanges.base import Exchange
from backends.strategies import aggregation_rules
from backends.strategies.message import WHOLE, whole
from backends.strategies.topologies.graphs import segments


class WeightAveraging(Exchange):
    """Updates, sends each segment to one peer, and averages it with that received from another."""

    def step(self, step: int, batch: int, optimizer: OptimizerSettings, budget_s: Optional[float] = None) -> None:
        parts, n = self.parts, len(self.names)
        weights, mailbox, topology = parts.replica.weights, parts.mailbox, parts.topology
        parts.local_update.apply(weights, parts.replica.gradients, optimizer)
        spans = list(enumerate(segments(parts.replica.variables, topology.segments)))
        for at, (start, end) in spans:
            for peer in self.peers(topology.sends_to(self.rank, n, step, at)):
                mailbox.send(peer, step, WHOLE[parts.strategy.compressor.name](weights[start:end]), kind=str(at))
        received = [
            (start, end, mailbox.next(peer, step, str(at)))
            for at, (start, end) in spans
            for peer in self.peers(topology.receives_from(self.rank, n, step, at))
        ]
        mailbox.flush()  # the weights must not change while they are sent
        for start, end, envelope in received:
            aggregation_rules.average(weights[start:end], whole(envelope.message))
