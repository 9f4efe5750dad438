"""Gradient exchange sends a peer's gradient, or part of it, and applies those of others.

Source: DLion and the systems it is compared with.
"""

import math
from typing import Any, Dict, List, Optional

import numpy as np

from backends.frameworks.base import Arrays
from backends.frameworks.optimizer import OptimizerSettings
from backends.network.mailbox import Envelope
from backends.peers.exchanges.base import Exchange, ExchangeParts
from backends.strategies.aggregation_rules import FACTORS, WITH_MEAN
from backends.strategies.compressors.base import Compressor
from backends.strategies.message import DENSE, Message, add

GRADIENT = "gradient"
#: Byte budget of a link before its rate is measured: large enough to measure by, and small for a
#: slow link.
FIRST_BYTES = 1 << 17
#: Prefix of the names of peers whose links have their own compressors, in a checkpoint; and the
#: name of the compressor that all links share.
PEER_PREFIX, SHARED = "peer ", "peers"


class GradientExchange(Exchange):
    """Sends to all peers, waits for the messages that the sync policy requires, applies all.

    Members that wait for others accept no message of a step later than their own, so that every
    replica computes the same sum. Other members apply all messages that have arrived.
    """

    def __init__(self, parts: ExchangeParts) -> None:
        super().__init__(parts)
        self._shared = parts.strategy.compressor.build(parts.replica.variables)
        self._shared.bind_weights(parts.replica.weights)
        self._by_peer: Dict[str, Compressor] = {}
        self._batches: Dict[str, int] = {}
        self._merged = np.empty(parts.replica.weights.size, np.float32)

    def step(self, step: int, batch: int, optimizer: OptimizerSettings, budget_s: Optional[float] = None) -> None:
        awaited = self.parts.strategy.sync.waits_for(len(self.names)) - 1
        self._send(step, batch, budget_s, waits=awaited > 0)
        received = self._receive(step, awaited)
        if awaited:
            self.parts.mailbox.flush()  # the gradients must not change while they are sent
        self._merge(sorted(received, key=lambda envelope: envelope.order), batch)
        self.parts.local_update.apply(self.parts.replica.weights, self._merged, optimizer)

    def _send(self, step: int, batch: int, budget_s: Optional[float], waits: bool) -> None:
        # All messages are made before the first is sent. A link seems faster while the others are
        # idle than beside them, so that budgets would exceed the network card's rate.
        peers = self.peers(self.parts.topology.sends_to(self.rank, len(self.names), step))
        shared = self._shared_message(waits) if peers and not self._shared.by_link else None
        gradients = self.parts.replica.gradients
        messages = [
            shared or self._compressor_for(peer).compress(gradients, self._budget_bytes(peer, budget_s))
            for peer in peers
        ]
        for peer, message in zip(peers, messages):
            self.parts.mailbox.send(peer, step, message, kind=GRADIENT, batch=batch)

    def _shared_message(self, waits: bool) -> Message:
        """The message to all peers; a copy if the next gradient is computed while it is sent."""
        message = self._shared.compress(self.parts.replica.gradients)
        if message.kind == DENSE and not waits:
            return message._replace(arrays=(message.arrays[0].copy(),))
        return message

    def _compressor_for(self, peer: str) -> Compressor:
        if peer not in self._by_peer:
            self._by_peer[peer] = self.parts.strategy.compressor.build(self.parts.replica.variables)
            self._by_peer[peer].bind_weights(self.parts.replica.weights)
        return self._by_peer[peer]

    def _budget_bytes(self, peer: str, budget_s: Optional[float]) -> float:
        """Bytes that the link to a peer carries in ``budget_s``."""
        if budget_s is None:
            return math.inf
        bytes_per_s = self.parts.mailbox.bytes_per_s(peer)
        return FIRST_BYTES if bytes_per_s is None else bytes_per_s * budget_s

    def _receive(self, step: int, awaited: int) -> List[Envelope]:
        """All gradients that have arrived; waits for ``awaited`` gradients of this step."""
        mailbox = self.parts.mailbox
        received = mailbox.take(
            lambda envelope: _is_gradient(envelope) and (not awaited or envelope.head.step <= step), 0
        )
        missing = awaited - sum(envelope.head.step == step for envelope in received)
        if missing > 0:
            received += mailbox.take(lambda envelope: _is_gradient(envelope) and envelope.head.step == step, missing)
        return received

    def _merge(self, received: List[Envelope], batch: int) -> None:
        """Sum all gradients in order of step and name, so that equal sums have equal bits."""
        total, own = self._merged, self.parts.mailbox.name
        compared = self._compared_batch(received, batch)
        total.fill(0.0)
        for envelope in received:
            if envelope.sender < own:
                add(envelope.message, total, self._share(envelope.head.batch, compared))
        np.add(total, self._share(batch, compared) * self.parts.replica.gradients, out=total)
        for envelope in received:
            if envelope.sender > own:
                add(envelope.message, total, self._share(envelope.head.batch, compared))

    def _compared_batch(self, received: List[Envelope], batch: int) -> float:
        """The batch to compare with: one's own, or the mean of all members' last batches.

        A member that has sent nothing yet counts with one's own batch.
        """
        if self.parts.strategy.aggregation not in WITH_MEAN:
            return batch
        self._batches.update((envelope.sender, envelope.head.batch) for envelope in received)
        self._batches[self.parts.mailbox.name] = batch
        return sum(self._batches.get(name, batch) for name in self.names) / float(len(self.names))

    def _share(self, batch: int, compared: float) -> float:
        return FACTORS[self.parts.strategy.aggregation](batch, compared, self.parts.batch, len(self.names))

    def _compressors(self) -> Dict[str, Compressor]:
        by_peer = {PEER_PREFIX + name: each for name, each in self._by_peer.items()}
        return dict(by_peer, **{SHARED: self._shared})

    def state(self) -> Dict[str, Arrays]:
        """The state of each stateful compressor."""
        return {label: each.state() for label, each in self._compressors().items() if each.state()}

    def restore(self, state: Dict[str, Arrays]) -> None:
        for label, arrays in state.items():
            if label.startswith(PEER_PREFIX):
                self._compressor_for(label[len(PEER_PREFIX) :]).restore(arrays)
            else:
                self._shared.restore(arrays)

    def metrics(self) -> Dict[str, Any]:
        """Metrics of the compressor, or by the peer's name of each link's compressor."""
        if self._shared.by_link:
            return {name: each.metrics() for name, each in self._by_peer.items()}
        return self._shared.metrics()


def _is_gradient(envelope: Envelope) -> bool:
    return envelope.head.kind == GRADIENT
