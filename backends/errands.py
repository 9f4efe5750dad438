"""What a worker and its server say to each other, from the worker's side."""

from typing import Any, Dict, List

import numpy as np

from backends import wire
from backends.base import Replica
from backends.keeping import described
from backends.layout import layout_of
from backends.strategies.message import DENSE, Message, buffers, put
from backends.strategies.senders import Sender
from backends.tickets import EVALUATE, FINISH


class Errands:
    """A worker's side. ``merged``: (state,) float32 that came with an evaluation. All methods raise WireError."""

    def __init__(self, connection: wire.Connection, replica: Replica, sender: Sender) -> None:
        self._connection = connection
        self._replica = replica
        self._sender = sender
        self.merged = np.empty_like(replica.state)
        sender.look(replica.weights)

    def introduce(self) -> None:
        """Get the run's state, and after a checkpoint what was kept; or give the initial weights."""
        replica, kept = self._replica, self._sender.state()
        replica.fetch()
        self._connection.send({"layout": layout_of(replica).encode(), "keeps": described(kept)})
        answer = self._connection.receive(
            lambda meta: () if meta["initial"] else wire.as_bytes((replica.state,) + (kept if meta["kept"] else ()))
        ).meta
        if answer["initial"]:
            self._connection.send({}, wire.as_bytes((replica.weights, replica.state)))
        elif answer["kept"]:
            self._sender.restore(kept)

    def order(self) -> Dict[str, Any]:
        """What to do next, the weights brought up to date."""
        weights = self._replica.weights
        pulls: List[Message] = []

        def payload(meta: Dict[str, Any]) -> Any:
            if meta["kind"] == FINISH:
                return ()
            pulls.append(buffers(meta["weights"], weights.size, weights))
            state = (self.merged,) if meta["kind"] == EVALUATE else ()
            return wire.as_bytes(pulls[0].arrays + state)

        order = self._connection.receive(payload).meta
        if pulls and pulls[0].kind != DENSE:  # else it is where it belongs
            put(pulls[0], weights)
        return order

    def answer(self, order: Dict[str, Any], loss: float, seconds: float) -> None:
        """Send the gradient at hand, or what of it is to go, what computing it took, and what is kept where it is asked
        for."""
        message = self._sender.send(self._replica.gradients)
        kept = self._sender.state() if order["keep"] else ()
        arrays = message.arrays + (self._replica.state,) + kept
        answer = {"loss": loss, "seconds": seconds, "gradient": message.head}
        self._connection.send(answer, wire.as_bytes(arrays))

    def finish(self, order: Dict[str, Any]) -> None:
        """Hand over what is kept, where it is asked for."""
        if order["keep"]:
            self._connection.send({}, wire.as_bytes(self._sender.state()))
