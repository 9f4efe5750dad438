"""A coordinator runs in one thread and its peers in others, with real sockets between them."""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from backends.data.loader import ArraySamples, BatchLoader, BatchSource
from backends.frameworks.base import Replica
from backends.frameworks.optimizer import OptimizerSettings
from backends.network import framing
from backends.network.mailbox import Mailbox
from backends.optimizers import registry
from backends.peers.coordinator import PeerCoordinator
from backends.peers.exchanges.base import ExchangeParts
from backends.peers.exchanges.registry import exchange
from backends.peers.peer import Peer
from backends.strategies.strategy import Strategy
from backends.training.lr_schedule import RateSchedule
from tests.backends.fakes import BATCH, TEST, Softmax, images, run_spec
from tests.backends.hosted_run import HostedRun, MemberThread
from tests.running import HANG_S

NAMES = ("nano", "pc", "tx2", "xavier")


class PeerRun(HostedRun):
    """A coordinator in a thread; peers join with ``start``."""

    def __init__(self, folder: Path, strategy: str, steps: int, members: int, **changes: Any) -> None:
        self.strategy = Strategy.from_text(strategy)
        self.expected = members
        values = {
            "optimizer": OptimizerSettings(0.1, changes.pop("momentum", 0.0), 0.0),
            "schedule": RateSchedule(),
            "heartbeat_s": HANG_S,
            "strategy": self.strategy,
            "members": members,
            "training_samples": 1000,
            **changes,
        }
        super().__init__(PeerCoordinator, run_spec(folder, steps, **values))

    def start(self, seed: int, **changes: Any) -> "PeerThread":
        return PeerThread(self, NAMES[seed], seed, **changes)

    def start_all(self, **changes: Any) -> list["PeerThread"]:
        return [self.start(seed, **changes) for seed in range(self.expected)]


def shard(seed: int) -> BatchLoader:
    """What a peer trains on: 200 images of its own."""
    return BatchLoader(ArraySamples(*images(200, seed + 1)), BATCH, seed)


class PeerThread(MemberThread):
    """A peer that does what it should, in a thread, until it is ``cut``."""

    def __init__(
        self,
        run: PeerRun,
        name: str,
        seed: int,
        skip: int = 0,
        initial: int = 0,
        replica: Replica | None = None,
        clock: Callable[[], float] = time.perf_counter,
        batches: BatchSource | None = None,
        own_code: Callable[[], Any] = contextlib.ExitStack,
    ) -> None:
        super().__init__()
        self._own_code = own_code
        self.replica = replica or Softmax(initial)
        own = shard(seed)
        own.order.position = skip * BATCH
        self.batches = own if batches is None else batches
        self._run, self._clock = run, clock
        listener = framing.listen("127.0.0.1")
        self._port = listener.getsockname()[1]
        identity = run.authority.identity(name, listens=True)
        self.mailbox = Mailbox(name, identity, listener, self.replica.weights.size, HANG_S, lambda _: None)
        self.exchange = exchange(self._parts(run.strategy))
        self.mailbox.handle = self.exchange.handle
        self.connection = run.connect(name)
        self.heartbeat = run.heartbeat(name, on_answer=self.mailbox.call)
        self.start()

    def _parts(self, strategy: Strategy) -> ExchangeParts:
        return ExchangeParts(
            replica=self.replica,
            mailbox=self.mailbox,
            topology=strategy.topology.build(0),
            strategy=strategy,
            local_update=registry.build(self._run.spec.shared_kind, self.replica.variables),
            batch=BATCH,
        )

    def take_part(self) -> None:
        optimizer = self._run.spec.optimizer
        self.peer = Peer(
            self.connection, self.replica, self.batches, TEST, self.exchange, optimizer, self._own_code, self._clock
        )
        try:
            self.peer.run("127.0.0.1", self._port)
        finally:
            self.cut()

    def cut(self) -> None:
        """Gone, as a killed process is."""
        self.mailbox.close()
        self.heartbeat.close()
        self.connection.abort()

    def freeze(self) -> None:
        """Neither works nor says so, as a stopped process does: its connections stay."""
        self.heartbeat.close()
        self.exchange.step = lambda *_: threading.Event().wait()

    def end(self) -> np.ndarray:
        """Its weights when the run is over."""
        self.await_end()
        return self.replica.weights
