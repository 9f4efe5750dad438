"""Gradients, or parts of them, to peers; each takes in what comes (DLion and the systems it is compared with)."""

import math
from typing import Any, Dict, List

import numpy as np

from backends.frameworks.base import Arrays, OptimizerSettings
from backends.network.mailbox import Envelope
from backends.peers.exchanges.base import Exchange, ExchangeParts
from backends.strategies.aggregation import FACTORS, WITH_MEAN
from backends.strategies.compressors.base import Compressor
from backends.strategies.message import DENSE, add

GRADIENT = "gradient"
#: A message's before its link has been measured: enough to tell, and soon gone where it is slow, unlike a gradient.
FIRST_BYTES = 1 << 17


class GradientExchange(Exchange):
    """Everyone sends to its peers, waits for as many as the synchronisation policy says, and applies what has come.

    Members who wait take in no message of a later step than their own, so that with all of them there every replica
    makes the same sum. Others take in whatever has come.
    """

    def __init__(self, means: ExchangeParts) -> None:
        super().__init__(means)
        self._shared = means.strategy.compressor.build(means.replica.variables)
        self._shared.bind_weights(means.replica.weights)
        self._own: Dict[str, Compressor] = {}
        self._batches: Dict[str, int] = {}
        self._merged = np.empty(means.replica.weights.size, np.float32)

    def step(self, step: int, batch: int, optimiser: OptimizerSettings, budget_s: Any = None) -> None:
        links, n = self.means.links, len(self.names)
        waited = self.means.strategy.sync.waits_for(n) - 1
        self._send(step, batch, budget_s, bool(waited))
        arrived = links.take(lambda parcel: _is_gradient(parcel) and (not waited or parcel.step <= step), 0)
        missing = waited - sum(parcel.step == step for parcel in arrived)
        if missing > 0:
            arrived += links.take(lambda parcel: _is_gradient(parcel) and parcel.step == step, missing)
        if waited:
            links.flush()  # the gradients are to be overwritten
        self._merge(sorted(arrived, key=lambda parcel: (parcel.step, parcel.sender)), batch)
        self.means.local.apply(self.means.replica.weights, self._merged, optimiser)

    def _send(self, step: int, batch: int, budget_s: Any, waits: bool) -> None:
        gradients, links = self.means.replica.gradients, self.means.links
        peers = self.peers(self.means.topology.sends_to(self.rank, len(self.names), step))
        message = None if self._shared.by_link or not peers else self._shared.compress(gradients)
        if message is not None and message.kind == DENSE and not waits:
            message = message._replace(arrays=(message.arrays[0].copy(),))  # goes on while others are computed
        # All are chosen before the first goes out: a link that carries something while the others still rest seems to
        # carry more than it does beside them, and together they would get more than the card has.
        chosen = [message or self._for(peer).compress(gradients, self._budget(peer, budget_s)) for peer in peers]
        for peer, mine in zip(peers, chosen):
            links.send(peer, step, mine, kind=GRADIENT, batch=batch)

    def _for(self, peer: str) -> Compressor:
        if peer not in self._own:
            self._own[peer] = self.means.strategy.compressor.build(self.means.replica.variables)
            self._own[peer].bind_weights(self.means.replica.weights)
        return self._own[peer]

    def _budget(self, peer: str, budget_s: Any) -> float:
        """Bytes that the link carries in budget_s; no bound without one."""
        if budget_s is None:
            return math.inf
        rate = self.means.links.bytes_per_s(peer)
        return FIRST_BYTES if rate is None else rate * budget_s

    def _merge(self, arrived: List[Envelope], batch: int) -> None:
        """All in the order of steps and names, one's own among them, so that who gets the same has the same."""
        total, own = self._merged, self.means.links.name
        compared = self._compared_with(arrived, batch)
        total.fill(0.0)
        for parcel in arrived:
            if parcel.sender < own:
                add(parcel.message, total, self._share(int(parcel.meta["batch"]), compared))
        np.add(total, self._share(batch, compared) * self.means.replica.gradients, out=total)
        for parcel in arrived:
            if parcel.sender > own:
                add(parcel.message, total, self._share(int(parcel.meta["batch"]), compared))

    def _compared_with(self, arrived: List[Envelope], batch: int) -> float:
        """Samples: one's own, or the mean of all members' last; of who has sent nothing yet, as many as one's own."""
        if self.means.strategy.aggregation not in WITH_MEAN:
            return batch
        self._batches.update((parcel.sender, int(parcel.meta["batch"])) for parcel in arrived)
        self._batches[self.means.links.name] = batch
        return sum(self._batches.get(name, batch) for name in self.names) / float(len(self.names))

    def _share(self, batch: int, compared: float) -> float:
        return FACTORS[self.means.strategy.aggregation](batch, compared, self.means.batch, len(self.names))

    def _senders(self) -> Dict[str, Compressor]:
        return dict({"peer " + name: made for name, made in self._own.items()}, peers=self._shared)

    def state(self) -> Dict[str, Arrays]:
        """What each sender keeps."""
        return {name: made.state() for name, made in self._senders().items() if made.state()}

    def restore(self, state: Dict[str, Arrays]) -> None:
        for name, arrays in state.items():
            (self._for(name[5:]) if name.startswith("peer ") else self._shared).restore(arrays)

    def told(self) -> Dict[str, Any]:
        """What its sender tells, or each by the peer that it is for."""
        return (
            {name: made.metrics() for name, made in self._own.items()}
            if self._shared.by_link
            else self._shared.metrics()
        )


def _is_gradient(parcel: Envelope) -> bool:
    return bool(parcel.meta.get("kind") == GRADIENT)
