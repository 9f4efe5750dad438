"""A bucket of gradients is reduced to the mean of all members by one of torch's own hooks."""

import time
from typing import Any, Callable, Collection, Dict, Tuple

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

from backends.frameworks.process_group import ExchangeTime, GroupSettings, OnWait
from backends.pytorch.ready_shares import gpu_event
from profilers import thread_times

Hook = Callable[[Any, Any], Any]


class BucketReduction:
    """The hook that reduces a bucket of gradients to their mean, and a clock beside it.

    weight: factor of this member's gradients, before their mean over the members is taken; it may
        change between two gradients.
    threads: those that exchange.
    on_wait: called with whether the hook may wait for other members from here on.
    """

    def __init__(
        self,
        hook: Tuple[Any, Hook],
        weight: float,
        on_gpu: bool,
        threads: Collection[int],
        on_wait: OnWait,
    ) -> None:
        self.state, self.hook = hook
        self.on_wait = on_wait
        self.weight = weight
        self._on_gpu = on_gpu
        self._threads = threads
        self._ready = _now(on_gpu)
        self._ready_cpu_s = self._hidden_cpu_s = self._held_up_s = 0.0
        self._threads_cpu_s: Dict[int, float] = {}

    def begin(self) -> None:
        """A gradient begins that is to be exchanged."""
        self._held_up_s = 0.0
        self._threads_cpu_s = thread_times.cpu_s_by_thread(self._threads)

    def backward_done(self) -> None:
        """The last bucket is ready: all gradients of this member are computed."""
        self._ready = _now(self._on_gpu)
        self._ready_cpu_s = time.process_time()
        now_s = thread_times.cpu_s_by_thread(self._threads_cpu_s)
        self._hidden_cpu_s = sum(used_s - self._threads_cpu_s[thread] for thread, used_s in now_s.items())

    def held_up(self, seconds: float) -> None:
        """The hook has held up the backward pass, which had not ended."""
        self._held_up_s += seconds

    def exchange(self) -> ExchangeTime:
        """As ``ProcessGroup.exchange``."""
        now = _now(self._on_gpu)
        cpu_s = time.process_time() - self._ready_cpu_s
        if not self._on_gpu:
            return ExchangeTime(now - self._ready + self._held_up_s, cpu_s, self._hidden_cpu_s)
        now.synchronize()
        return ExchangeTime(self._ready.elapsed_time(now) / 1e3, cpu_s, self._hidden_cpu_s)


def _now(on_gpu: bool) -> Any:
    """Seconds on the processor; on a GPU an event behind all work that was given to it."""
    return gpu_event() if on_gpu else time.perf_counter()


def reduce_bucket(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    # torch checks the names and annotations of a hook's parameters.
    assert isinstance(state, BucketReduction)
    state.on_wait(True)  # first: what it does is part of this member's computing
    if bucket.is_last():
        state.backward_done()
    if state.weight != 1.0:
        bucket.buffer().mul_(state.weight)
    began = time.perf_counter()
    found = state.hook(state.state, bucket)
    if not bucket.is_last():
        state.on_wait(False)
        state.held_up(time.perf_counter() - began)
    return found


def hook_of(settings: GroupSettings, backend: str) -> Tuple[Any, Hook]:
    """One of torch's own hooks, with its state; each gives the mean over all members."""
    if settings.hook == "powersgd":
        state = powerSGD_hook.PowerSGDState(None, settings.matrix_rank, start_powerSGD_iter=settings.start)
        return state, _power_sgd_over_gloo if backend == "gloo" else powerSGD_hook.powerSGD_hook
    hooks: Dict[str, Hook] = {
        "none": default_hooks.allreduce_hook,
        "bf16": default_hooks.bf16_compress_hook,
        "fp16": default_hooks.fp16_compress_hook,
    }
    return None, hooks[settings.hook]


def _power_sgd_over_gloo(
    state: powerSGD_hook.PowerSGDState, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """PowerSGD of one bucket after the other.

    Its callbacks run in gloo's threads, of which there are two, and wait there for exchanges that
    need one of them. Two buckets at once would wait for ever.
    """
    compresses = state.iter >= state.start_powerSGD_iter
    found = powerSGD_hook.powerSGD_hook(state, bucket)
    if compresses:
        found.wait()
    return found
