"""Weights, averaged segment by segment with one peer each (Crossover-SGD, Yeo et al., Alg. 1)."""

from typing import Any

from backends.frameworks.base import OptimizerSettings
from backends.peers.exchanges.base import Exchange
from backends.strategies import aggregation
from backends.strategies.message import WHOLE, whole
from backends.strategies.topologies.derangement import segments


class WeightAveraging(Exchange):
    """Update, send every segment to its peer and receive it from another, and average when all are there."""

    def step(self, step: int, batch: int, optimiser: OptimizerSettings, budget_s: Any = None) -> None:
        means, n = self.means, len(self.names)
        weights, links = means.replica.weights, means.links
        means.local.apply(weights, means.replica.gradients, optimiser)
        parts = list(enumerate(segments(means.replica.variables, means.topology.segments)))
        for at, (start, end) in parts:
            for peer in self.peers(means.topology.sends_to(self.rank, n, step, at)):
                links.send(peer, step, WHOLE[means.strategy.compressor.name](weights[start:end]), kind=str(at))
        coming = [
            (start, end, links.next(peer, step, str(at)))
            for at, (start, end) in parts
            for peer in self.peers(means.topology.receives_from(self.rank, n, step, at))
        ]
        links.flush()  # what is sent must not be averaged yet
        for start, end, parcel in coming:
            aggregation.average(weights[start:end], whole(parcel.message))
