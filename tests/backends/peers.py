"""Members of a run of peers, in threads of one process, with real sockets between them."""

import threading
from pathlib import Path
from typing import Any

import numpy as np

from backends.data.dataset import BatchLoader
from backends.frameworks.base import OptimizerSettings, Replica
from backends.network import framing
from backends.network.heartbeat import Heartbeat
from backends.network.mailbox import Mailbox
from backends.peers.coordinator import PeerCoordinator
from backends.peers.exchanges.base import ExchangeParts, LocalUpdate
from backends.peers.exchanges.registry import exchange
from backends.peers.peer import Peer
from backends.strategies.strategy import Strategy
from backends.training.lr_schedule import RateSchedule
from tests.backends.fakes import BATCH, TEST, Softmax, images, work
from tests.backends.hosting import Hosting, Participant

NAMES = ("nano", "pc", "tx2", "xavier")


class Peers(Hosting):
    """A conductor and its events; members join with ``start``."""

    def __init__(self, folder: Path, strategy: str, steps: int, members: int, **changes: Any) -> None:
        self.strategy = Strategy.from_text(strategy)
        self.members = members
        values = {
            "optimiser": OptimizerSettings(0.1, changes.pop("momentum", 0.0), 0.0), "schedule": RateSchedule(),
            "heartbeat_s": 5.0,
            "strategy": self.strategy, "members": members,
            "training_samples": 1000, **changes,
        }  # fmt: skip
        super().__init__(PeerCoordinator, work(folder, steps, **values))

    def start(self, seed: int, **changes: Any) -> "Player":
        return Player(self, NAMES[seed], seed, **changes)

    def all(self, **changes: Any) -> list["Player"]:
        return [self.start(seed, **changes) for seed in range(self.members)]


def shard(seed: int) -> BatchLoader:
    """What a member trains on: 200 images of its own."""
    return BatchLoader(*images(200, seed + 1), BATCH, seed)


class Player(Participant):
    """A member that does what it should, in a thread, until it is ``cut``."""

    def __init__(
        self,
        peers: Peers,
        name: str,
        seed: int,
        slowdown: float = 1.0,
        skip: int = 0,
        initial: int = 0,
        replica: Replica | None = None,
    ) -> None:
        super().__init__()
        self.replica = replica or Softmax(initial)
        self.batches = shard(seed)
        self.batches.position = skip * BATCH
        self._peers, self._name, self._slowdown = peers, name, slowdown
        identity = peers.authority.identity(name, listens=True)
        listener = framing.listen("127.0.0.1")
        self._at = listener.getsockname()[1]
        self.links = Mailbox(name, identity, listener, self.replica.weights.size, 5.0, lambda _: None)
        strategy = peers.strategy
        means = ExchangeParts(
            self.replica, self.links, strategy.topology.build(0), strategy,
            LocalUpdate(self.replica, strategy.with_lars), BATCH,
        )  # fmt: skip
        self.exchange = exchange(means)
        self.links.handle = self.exchange.handle
        self.connection = peers.connect(name)
        self.pulse = Heartbeat(peers.connect(name), 1.0, lambda _: None, lambda meta: self.links.call(meta["call"]))
        self.start()

    def take_part(self) -> None:
        optimiser = self._peers.work.optimiser
        try:
            Peer(
                self.connection, self.replica, self.batches, TEST, self.exchange, optimiser, self._slowdown
            ).run("127.0.0.1", self._at)  # fmt: skip
        finally:
            self.cut()

    def cut(self) -> None:
        """Gone, as a killed process is."""
        self.links.close()
        self.pulse.close()
        self.connection.abort()

    def freeze(self) -> None:
        """Neither works nor says so, as a stopped process does: its connections stay."""
        self.pulse.close()
        self.exchange.step = lambda *_: threading.Event().wait()

    def end(self) -> np.ndarray:
        """Its weights when the run is over."""
        self.await_end()
        return self.replica.weights
