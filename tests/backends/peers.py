"""Members of a run of peers, in threads of one process, with real sockets between them."""

import threading
from pathlib import Path
from typing import Any

import numpy as np

from backends import checkpoint, wire
from backends.base import Optimiser, Replica
from backends.conductor import Conductor
from backends.data import Batches
from backends.exchanges.base import Local, Means
from backends.exchanges.registry import exchange
from backends.links import Links
from backends.member import Member
from backends.schedule import Schedule
from backends.strategies import gates, presets, topologies
from backends.worker import Pulse
from planner.certificates import Authority
from tests.backends.fakes import TEST, Softmax, images

LIMIT_S = 30.0
BATCH = 8
NAMES = ("nano", "pc", "tx2", "xavier")


class Peers:
    """A conductor and its events; members join with ``start``."""

    def __init__(self, folder: Path, strategy: str, steps: int, members: int, **changes: Any) -> None:
        from backends.work import Work

        self.strategy = presets.strategy(strategy)
        self.members = members
        self.momentum = changes.pop("momentum", 0.0)
        values = {
            "optimiser": Optimiser(0.1, self.momentum, 0.0), "schedule": Schedule(), "heartbeat_s": 5.0,
            "checkpoint_path": str(folder / "checkpoint.npz"), "description": {"model": "softmax"},
            "gate": gates.parse(self.strategy.gate), "strategy": self.strategy, "members": members, "batch": BATCH,
            "training_samples": 1000, **changes,
        }  # fmt: skip
        self.work = Work(steps=steps, **values)
        self.authority = Authority()
        self.events: list[dict[str, Any]] = []
        self.stopping = threading.Event()
        self.conductor = Conductor(self.work, self.authority.identity(wire.SERVER), self.events.append)
        listener = wire.listen("127.0.0.1")
        self.port = listener.getsockname()[1]
        self._account: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._run, args=(listener,), daemon=True)
        self._thread.start()

    def _run(self, listener: Any) -> None:
        self._account = self.conductor.run(listener, self.stopping.is_set)

    def start(self, seed: int, **changes: Any) -> "Player":
        return Player(self, NAMES[seed], seed, **changes)

    def all(self, **changes: Any) -> list["Player"]:
        return [self.start(seed, **changes) for seed in range(self.members)]

    def account(self) -> dict[str, Any]:
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive(), "the conductor hangs"
        return self._account

    @property
    def done(self) -> int:
        return int(self.conductor.office.tickets.done)

    def saved(self) -> checkpoint.Checkpoint:
        return checkpoint.read(str(self.work.checkpoint_path))[0]


def shard(seed: int) -> Batches:
    """What a member trains on: 200 images of its own."""
    return Batches(*images(200, seed + 1), BATCH, seed)


class Player(threading.Thread):
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
        super().__init__(daemon=True)
        self.replica = replica or Softmax(initial)
        self.failure: str | None = None
        self.batches = shard(seed)
        self.batches.position = skip * BATCH
        self._peers, self._name, self._slowdown = peers, name, slowdown
        identity = peers.authority.identity(name, listens=True)
        tls = wire.context(identity, server_side=False)
        listener = wire.listen("127.0.0.1")
        self._at = listener.getsockname()[1]
        self.links = Links(name, identity, listener, self.replica.weights.size, 5.0, lambda _: None)
        strategy = peers.strategy
        means = Means(
            self.replica, self.links, topologies.parse(strategy.topology, 0), gates.parse(strategy.gate),
            strategy.sender, strategy.merge, Local(self.replica, strategy.optimiser == "lars"), BATCH,
        )  # fmt: skip
        self.exchange = exchange(means)
        self.links.handle = self.exchange.handle
        self.connection = wire.connect("127.0.0.1", peers.port, tls, LIMIT_S)
        beats = wire.connect("127.0.0.1", peers.port, tls, LIMIT_S)
        self.pulse = Pulse(beats, 1.0, lambda _: None, lambda meta: self.links.call(meta["call"]))
        self.start()

    def run(self) -> None:
        try:
            member = Member(
                self.connection, self.replica, self.batches, TEST, self.exchange,
                self._peers.work.optimiser, self._slowdown,
            )  # fmt: skip
            member.run("127.0.0.1", self._at)
        except wire.WireError as error:
            self.failure = str(error)
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
        self.join(LIMIT_S)
        assert not self.is_alive() and self.failure is None, self.failure or "the member hangs"
        return self.replica.weights


def union(steps: int, members: int, momentum: float = 0.0, replica: Replica | None = None) -> np.ndarray:
    """The weights of one process that takes the batches of all members together in each of its steps."""
    replica, drawn = replica or Softmax(), [shard(seed) for seed in range(members)]
    for _ in range(steps):
        together = [np.concatenate(part) for part in zip(*(next(each) for each in drawn), strict=True)]
        replica.gradient(*together, rate=0.1)
        replica.update(momentum)
    replica.fetch()
    return replica.weights
