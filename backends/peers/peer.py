"""A member of a run of peers: takes turns at the conductor's, and exchanges what it learns with the others."""

import collections
import hashlib
import statistics
import time
from typing import Any, Deque, Dict, Tuple

import numpy as np

from backends.frameworks.base import Arrays, OptimizerSettings, Replica
from backends.network import framing
from backends.network.mailbox import Interrupted, Mailbox
from backends.peers.coordinator import flat, labels, rooms
from backends.peers.exchanges.base import Exchange
from backends.peers.membership import GIVE, SAVE, TAKE
from backends.strategies import knowledge_transfer
from backends.strategies.message import dense
from backends.training.layout import layout_of
from backends.training.step import TimeSpent, evaluate, require, step
from backends.training.step_queue import EVALUATE, FINISH

#: Steps whose middle one says what a gradient takes: so few that the first of a run, and those with other batches, are
#: soon forgotten.
LATELY = 3


class Peer:
    """One member. ``optimiser``: its rate is that of each order; ``batches`` let their size be changed."""

    def __init__(
        self,
        connection: framing.Connection,
        replica: Replica,
        batches: Any,
        test: Tuple[np.ndarray, np.ndarray],
        exchange: Exchange,
        optimiser: OptimizerSettings,
        slowdown: float = 1.0,
    ) -> None:
        require(test[1])
        self._connection = connection
        self._replica = replica
        self._batches = batches
        self._test = test
        self._exchange = exchange
        self._links: Mailbox = exchange.means.links
        self._local = exchange.means.local
        self._optimiser = optimiser
        self._slowdown = slowdown
        self._epoch = -1
        self._busy_s: Deque[float] = collections.deque(maxlen=LATELY)
        self._told_bytes = 0
        self.spent = TimeSpent(0, 0.0, 0.0, 0.0)

    def run(self, address: str, port: int, on_step: Any = None) -> TimeSpent:
        """Take turns until the run is over; address, port: where this member listens. Raises WireError."""
        self._connection.settimeout(None)  # others may be computing: heartbeats tell who is alive
        self._introduce(address, port)
        while True:
            order = self._connection.receive(self._copy_of).meta
            if order["kind"] == FINISH:
                if order["keep"]:
                    self._hand_over()
                return self.spent
            self._act(order)
            if on_step is not None:
                on_step(self.spent)

    def _introduce(self, address: str, port: int) -> None:
        replica = self._replica
        replica.fetch()
        layout, found = layout_of(replica), []
        hello = {"layout": layout.encode(), "address": address, "port": port, "digest": self._digest()}
        self._connection.send(hello)

        def payload(meta: Dict[str, Any]) -> Any:
            found.append(rooms(meta["kept"], layout, 64))
            return framing.as_bytes(flat(found[0]))

        self._connection.receive(payload)
        kept = found[0]
        if "own" in kept:
            for mine, given in zip(self._own() + (replica.state,), kept.pop("own") + kept.pop("state")):
                mine[:] = given
            self._adopt()
            self._exchange.restore(kept)

    def _own(self) -> Arrays:
        return self._replica.weights, self._local.velocity

    def _digest(self) -> str:
        """By which weights that are alike are known."""
        digest = hashlib.sha256()
        for array in self._own():
            digest.update(array)
        return digest.hexdigest()

    def _copy_of(self, meta: Dict[str, Any]) -> Any:
        return framing.as_bytes(self._own() + (self._replica.state,)) if meta["kind"] == TAKE else ()

    def _adopt(self) -> None:
        self._replica.load()
        self._exchange.adopt()

    def _act(self, order: Dict[str, Any]) -> None:
        kind = order["kind"]
        if kind == EVALUATE:
            scores = evaluate(self._replica, *self._test)
            self._connection.send(scores)
            self.spent = self.spent._replace(evaluation_s=self.spent.evaluation_s + scores["seconds"])
        elif kind == TAKE:
            self._adopt()
            self._connection.send({})
        elif kind in (GIVE, SAVE):
            self._hand_over()
        else:
            self._step(order)

    def _hand_over(self) -> None:
        """Weights and all else, if nobody else has handed over the same weights."""
        self._connection.send({"digest": self._digest()})
        kept = dict(self._exchange.state(), state=(self._replica.state,))
        if self._connection.receive().meta["own"]:
            kept["own"] = self._own()
        self._connection.send({"kept": labels(kept)}, framing.as_bytes(flat(kept)))

    def _step(self, order: Dict[str, Any]) -> None:
        began, cpu = time.perf_counter(), time.process_time()
        self._begin(order)
        plain = self._local.with_lars  # which scales gradients itself
        optimiser = self._optimiser._replace(rate=order["rate"])
        self._batches.batch = order["batch"]
        rate, decay = (1.0, 0.0) if plain else (optimiser.rate, optimiser.weight_decay)
        loss = step(self._replica, self._batches, self._slowdown, rate, decay)[0]
        computed, gradient_cpu_s = time.perf_counter(), time.process_time() - cpu
        answer = {"loss": loss, "batch": order["batch"], "seconds": computed - began}
        self._busy_s.append(computed - began)
        try:
            self._share_knowledge(order)
            self._exchange.step(order["step"], order["batch"], optimiser, statistics.median_low(self._busy_s))
        except Interrupted:
            answer["interrupted"] = True
        self._replica.load()
        self._note(computed - began, time.perf_counter() - computed, gradient_cpu_s, int("interrupted" not in answer))
        sent, self._told_bytes = self._links.sent_bytes - self._told_bytes, self._links.sent_bytes
        self._connection.send(dict(answer, sent=sent))

    def _begin(self, order: Dict[str, Any]) -> None:
        if order["epoch"] != self._epoch:
            self._epoch = order["epoch"]
            self._exchange.begin([name for name, _, _ in order["members"]])
            self._links.begin(self._epoch, {name: (address, port) for name, address, port in order["members"]})

    def _share_knowledge(self, order: Dict[str, Any]) -> None:
        """Take over what the best has sent, and send what others are to take over (DLion, section 3.4)."""
        weights = self._replica.weights
        for parcel in self._links.take(lambda parcel: parcel.meta.get("kind") == "knowledge", 0):
            knowledge_transfer.merge(weights, parcel.message.arrays[0])
            self._exchange.adopt()
        if order["gives_to"]:
            copy = dense(weights.copy())
            for name in order["gives_to"]:
                self._links.send(name, order["step"], copy, kind="knowledge")

    def _note(self, busy_s: float, exchange_s: float, gradient_cpu_s: float, steps: int) -> None:
        self.spent = self.spent._replace(
            steps=self.spent.steps + steps,
            busy_s=self.spent.busy_s + busy_s,
            exchange_s=self.spent.exchange_s + exchange_s,
            gradient_cpu_s=self.spent.gradient_cpu_s + gradient_cpu_s,
        )
