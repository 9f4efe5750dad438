"""The processor time that DistributedDataParallel adds to a gradient, taken in a group of one."""

import functools
import gc
import statistics
import time
from typing import Any, Callable, Collection, Optional

import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

from backends.pytorch.bucket_reduction import BucketReduction, reduce_bucket
from backends.pytorch.replica import TorchReplica
from backends.pytorch.torch_group import TrainingLoss, end_group, gradient_of_part, wrapped
from profilers import thread_times

#: Pairs of gradients, without and with DistributedDataParallel: fewest and most that are timed, and
#: seconds for all but the fewest; and first ones that are not timed, for it fills its buckets anew
#: after the first.
FEWEST_PAIRS, MOST_PAIRS, PAIRS_S, WARM_PAIRS = 3, 7, 0.5, 2

#: Computes the gradient of a part of a batch: part, rate, weight decay, whether it adds, is last.
ComputePart = Callable[[Any, float, float, bool, bool], float]
#: Draws a batch; gives a function that computes its gradient in parts.
Draw = Callable[[], Callable[[ComputePart], Any]]


def own_cpu_s(replica: TorchReplica, draw: Draw) -> Optional[float]:
    """Processor seconds that DistributedDataParallel adds to a gradient: its copies and its hooks.

    A gradient is taken alone and in a group of one by turns. The threads of the exchange do not
    count: what they do depends on the other members. None where it cannot be measured: gloo does
    not find this device's own name, the job has a group of its own, or the model leaves parameters
    unused.
    """
    alone = replica.training_loss
    try:
        return _in_group_of_one(replica, draw)
    except Exception:  # noqa: BLE001 - also of the job's own code; a prediction can do without
        return None
    finally:
        replica.training_loss = alone
        gc.collect()  # hooks of a module that failed would meet the next gradient


def _in_group_of_one(replica: TorchReplica, draw: Draw) -> float:
    before = thread_times.thread_ids()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        threads, alone = thread_times.thread_ids() - before, replica.training_loss
        module = wrapped(TrainingLoss(replica, _waits_for_nobody))
        hook = (None, default_hooks.allreduce_hook)
        module.register_comm_hook(BucketReduction(hook, 1.0, False, threads, _waits_for_nobody), reduce_bucket)
        compute = functools.partial(gradient_of_part, replica)

        def added_s() -> float:
            replica.training_loss = alone
            alone_s = _cpu_s(draw(), compute, ())
            replica.training_loss = module
            return _cpu_s(draw(), compute, threads) - alone_s

        for _ in range(WARM_PAIRS):
            added_s()
        began_s, found = time.monotonic(), [added_s() for _ in range(FEWEST_PAIRS)]
        while len(found) < MOST_PAIRS and time.monotonic() - began_s < PAIRS_S:
            found.append(added_s())
    finally:
        end_group()
    return max(0.0, statistics.median(found))


def _waits_for_nobody(waits: bool) -> None:
    """A group of one."""


def _cpu_s(take: Callable[[ComputePart], Any], compute: ComputePart, without: Collection[int]) -> float:
    """Processor seconds of this process for a gradient but for those of some threads."""
    threads_s, process_s = thread_times.cpu_s_by_thread(without), time.process_time()
    take(compute)
    process_s = time.process_time() - process_s
    return process_s - sum(
        used_s - threads_s[thread] for thread, used_s in thread_times.cpu_s_by_thread(threads_s).items()
    )
