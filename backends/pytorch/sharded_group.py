"""A group whose members hold shares of one model; FSDP2 exchanges weights and gradients."""

from typing import Any, Optional

from torch import distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from backends.frameworks.base import Replica
from backends.frameworks.process_group import ExchangeTime, OnWait
from backends.pytorch.broken_exchange import as_group_error
from backends.pytorch.shard_exchange import ExchangeClock
from backends.pytorch.sharded_replica import ShardedReplica
from backends.pytorch.share_transfer import ShareTransfer
from backends.pytorch.torch_group import TorchGroup


class ShardedGroup(TorchGroup):
    """As ``TorchGroup``, of sharded replicas.

    Each part of a batch is exchanged, so that no member ever holds all gradients.
    """

    _replica: Optional[ShardedReplica] = None

    def average_gradients(self, replica: Replica, batch: int, on_wait: OnWait) -> None:
        assert isinstance(replica, ShardedReplica), "each member holds a share"
        batches = self.gather([batch])[:, 0]
        self._replica = replica
        self._clock = ExchangeClock(on_wait)
        self.weigh(float(batch / batches.sum()))
        transfer = ShareTransfer(self.rank, self.size, self._control)
        mesh: Any = DeviceMesh.from_group(dist.group.WORLD, replica.accelerator)
        with as_group_error():
            replica.divide(mesh, transfer, self._clock if self.backend == "gloo" else None)

    def weigh(self, part: float) -> None:
        assert self._replica is not None, "its gradients are averaged"
        self._replica.factor = part * self.size

    def gradient(
        self, replica: Replica, batch: object, rate: float, weight_decay: float, adds: bool, is_last: bool
    ) -> float:
        if not adds:
            self._clock.begin()
        with as_group_error():
            return replica.gradient(batch, rate, weight_decay, adds)

    def exchange(self) -> ExchangeTime:
        return self._clock.exchange()
