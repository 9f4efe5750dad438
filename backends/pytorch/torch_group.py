"""DistributedDataParallel averages the gradients of replicas over gloo or NCCL (torch 1.10 on)."""

import contextlib
import datetime
import functools
import inspect
import os
import socket
import threading
import time
from typing import Any, Dict, Optional, Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from backends.frameworks.base import Replica
from backends.frameworks.device import CUDA
from backends.frameworks.process_group import ExchangeTime, GroupSettings, OnWait, ProcessGroup
from backends.pytorch import group_backend
from backends.pytorch.broken_exchange import as_group_error
from backends.pytorch.bucket_reduction import BucketReduction, hook_of, reduce_bucket
from backends.pytorch.replica import TorchReplica
from profilers import thread_times

#: Longest wait for the first member's store, which is there before any other member begins.
CONNECT_S = 30.0
#: Longest wait of the first member until all others have left.
LEAVE_S = 10.0
#: Seconds after which an ended group is freed. That joins its threads while it holds the lock of
#: the interpreter, and just after the last work one of them may still be waiting for this lock.
FREED_AFTER_S = 1.0


def rehearse() -> None:
    """Make a step of a group of one, for torch imports much at its first use."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        wrapped(nn.Linear(1, 1))(torch.zeros(1, 1)).sum().backward()
    finally:
        end_group()


def gradient_of_part(
    replica: TorchReplica, part: object, rate: float, weight_decay: float, adds: bool, is_last: bool
) -> float:
    """The gradient of a part of a batch, which is exchanged with that of the last part."""
    wrapped = replica.training_loss
    if is_last or not isinstance(wrapped, DistributedDataParallel):
        return replica.gradient(part, rate, weight_decay, adds)
    with wrapped.no_sync():
        return replica.gradient(part, rate, weight_decay, adds)


def end_group(*others: Any) -> None:
    """End the default group and others, and free them later; the process does not end before."""
    ended = [dist.group.WORLD, *others]
    dist.destroy_process_group()
    threading.Timer(FREED_AFTER_S, ended.clear).start()


class TorchGroup(ProcessGroup):
    """A group over torch.distributed.

    listener: of the first member, at the address and port of the settings.
    Numbers that are not gradients go over gloo: they are on the host.
    Raises GroupError where the others are not reached, ValueError for a backend that is missing.
    """

    def __init__(self, settings: GroupSettings, listener: Optional[socket.socket] = None) -> None:
        self.rank, self.size = settings.rank, settings.size
        self._settings = settings
        self._reduction: Optional[BucketReduction] = None
        os.environ["GLOO_SOCKET_IFNAME"] = settings.interface
        os.environ["NCCL_SOCKET_IFNAME"] = "=" + settings.interface  # without the sign, also eth01 for eth0
        where = "cannot reach the first member at %s:%d" % (settings.address, settings.port)
        with as_group_error(where):
            store = _store(settings, listener)
            self._beats = _client(settings, settings.limit_s)
            self.backend = group_backend.agree(settings, store)
        before = thread_times.thread_ids()
        with as_group_error("cannot reach the other members over %s of this device" % settings.interface):
            dist.init_process_group(
                self.backend, store=store, rank=self.rank, world_size=self.size, timeout=_seconds(settings.wait_s)
            )
            self._control = dist.new_group(backend="gloo") if self.backend == "nccl" else None
        self._threads = thread_times.thread_ids() - before

    def average_gradients(self, replica: Replica, batch: int, on_wait: OnWait) -> None:
        assert isinstance(replica, TorchReplica), "torch's group is made for replicas of torch"
        batches = self.gather([batch])[:, 0]
        weight = float(batch * self.size / batches.sum())
        on_gpu = replica.accelerator == CUDA
        hook = hook_of(self._settings, self.backend)
        self._reduction = BucketReduction(hook, weight, on_gpu, self._threads, on_wait)
        with as_group_error():
            module = wrapped(TrainingLoss(replica, on_wait))
            # Before its second forward pass it tells all members the order of its buckets.
            module.register_forward_pre_hook(lambda *_: on_wait(True))
            module.register_comm_hook(self._reduction, reduce_bucket)
        replica.weights_changed()  # they are those of the first member now
        replica.training_loss = module

    def weigh(self, part: float) -> None:
        assert self._reduction is not None, "its gradients are averaged"
        self._reduction.weight = part * self.size

    def gradient(
        self, replica: Replica, batch: object, rate: float, weight_decay: float, adds: bool, is_last: bool
    ) -> float:
        assert isinstance(replica, TorchReplica), "torch's group is made for replicas of torch"
        assert self._reduction is not None, "its gradients are averaged"
        if is_last:
            self._reduction.begin()
        with as_group_error():
            return gradient_of_part(replica, batch, rate, weight_decay, adds, is_last)

    def exchange(self) -> ExchangeTime:
        assert self._reduction is not None, "a gradient was computed"
        return self._reduction.exchange()

    def gather(self, row: Sequence[float]) -> np.ndarray:
        own = torch.tensor(list(row), dtype=torch.float64)
        rows = [torch.empty_like(own) for _ in range(self.size)]
        with as_group_error():
            dist.all_gather(rows, own, group=self._control)
        return np.array(torch.stack(rows).numpy())

    def broadcast(self, values: np.ndarray) -> None:
        with as_group_error():
            dist.broadcast(torch.from_numpy(values), 0, group=self._control)

    def average(self, values: np.ndarray) -> None:
        # In double precision, so that the mean of equal values is their value.
        total = torch.from_numpy(values.astype(np.float64))
        with as_group_error():
            dist.all_reduce(total, group=self._control)
        values[:] = total.numpy() / self.size

    def beat(self, rank: int, by: int = 1) -> int:
        with as_group_error():
            return int(self._beats.add("beats/%d" % rank, by))

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # of one that is lost now, when nothing is left to do
            if self.rank == 0:
                self._await_departures()
            else:
                self._beats.add("left", 1)
        end_group(self._control)

    def _await_departures(self) -> None:
        """The first member, which holds the store, leaves last."""
        until_s = time.monotonic() + LEAVE_S
        while self._beats.add("left", 0) < self.size - 1 and time.monotonic() < until_s:
            time.sleep(0.005)


class TrainingLoss(nn.Module):
    """The loss of a batch as a module, for DistributedDataParallel sees a forward pass only."""

    def __init__(self, replica: TorchReplica, on_wait: OnWait) -> None:
        super().__init__()
        self.module = replica.module
        self._loss = replica.loss
        self._on_wait = on_wait

    def forward(self, batch: Any) -> torch.Tensor:
        self._on_wait(False)
        return self._loss(batch)


@functools.lru_cache(maxsize=None)
def _keep_buffers() -> Dict[str, bool]:
    """The option that leaves running statistics alone: ``average`` takes care of them."""
    known = inspect.signature(DistributedDataParallel.__init__).parameters
    return {"forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers": False}


def wrapped(module: nn.Module) -> DistributedDataParallel:
    return DistributedDataParallel(module, **_keep_buffers())


def _store(settings: GroupSettings, listener: Optional[socket.socket]) -> Any:
    """The first member's store of addresses, or a connection to it."""
    if listener is None:
        return _client(settings, CONNECT_S, then_s=settings.wait_s)
    place = (settings.address, settings.port, settings.size, True, _seconds(settings.wait_s))
    if "master_listen_fd" in str(dist.TCPStore.__init__.__doc__):
        return dist.TCPStore(*place, wait_for_workers=False, master_listen_fd=listener.detach())
    listener.close()  # an older torch listens on its own, and on every address
    return dist.TCPStore(*place, wait_for_workers=False)


def _client(settings: GroupSettings, connect_s: float, then_s: Optional[float] = None) -> Any:
    """A connection to the store; ``then_s``: limit of its later answers."""
    store = dist.TCPStore(
        settings.address, settings.port, settings.size, False, _seconds(connect_s), wait_for_workers=False
    )
    if then_s is not None:
        store.set_timeout(_seconds(then_s))
    return store


def _seconds(seconds: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=seconds)
