"""Members gather shares, and reduce gradients to shares, over gloo; a clock times the waiting.

Each member sends each other one what that one needs. torch's own reduce-scatter over gloo sends
twice as much. Its gather and its all-to-all often send first one way, then the other: a member that
starts to send before it has said that it can receive says so after all that it sends.
"""

import time
from typing import Any, Optional, Sequence

import torch
import torch.distributed as dist

from backends.frameworks.process_group import ExchangeTime, OnWait


class ExchangeClock:
    """Seconds, and processor seconds of this process, within its ``with`` statements."""

    def __init__(self, on_wait: OnWait) -> None:
        self._on_wait = on_wait
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self._waited_s = self._cpu_s = 0.0

    def __enter__(self) -> None:
        self._on_wait(True)
        self._since = time.perf_counter(), time.process_time()

    def __exit__(self, *_: Any) -> None:
        since_s, since_cpu_s = self._since
        self._waited_s += time.perf_counter() - since_s
        self._cpu_s += time.process_time() - since_cpu_s
        self._on_wait(False)

    def exchange(self) -> ExchangeTime:
        """As ``ProcessGroup.exchange``. Over gloo computing waits meanwhile: nothing is hidden."""
        return ExchangeTime(self._waited_s, self._cpu_s, 0.0)


class _Communication:
    """What FSDP2 asks of its communication, ``torch.distributed.fsdp``'s Comm."""

    def __init__(self, clock: ExchangeClock) -> None:
        self._clock = clock

    def allocate(self, size: Any, *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)


class GatherShares(_Communication):
    """All members' shares of a block, one after the other."""

    def __call__(
        self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, async_op: bool = False
    ) -> Optional[Any]:
        with self._clock:
            on_host = output_tensor.device.type == "cpu"
            found = output_tensor if on_host else torch.empty_like(output_tensor, device="cpu")
            own = input_tensor.cpu()
            _exchange(found.chunk(group.size()), [own] * group.size(), group)
            output_tensor.copy_(found)
        return None


class MeanOfShares(_Communication):
    """This member's share of the mean of all gradients of a block."""

    def __call__(
        self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, op: Any, async_op: bool = False
    ) -> Optional[Any]:
        with self._clock:
            parts = torch.empty_like(input_tensor, device="cpu")
            _exchange(parts.chunk(group.size()), input_tensor.cpu().chunk(group.size()), group)
        output_tensor.copy_(parts.view(group.size(), -1).mean(0))
        return None


def _exchange(received: Sequence[torch.Tensor], sent: Sequence[torch.Tensor], group: Any) -> None:
    """Send each member of a group one tensor and receive one of it, all of one size."""
    own = group.rank()
    received[own].copy_(sent[own])
    others = [(at, dist.get_global_rank(group, at)) for at in range(group.size()) if at != own]
    works = [dist.irecv(received[at], rank, group) for at, rank in others]
    works += [dist.isend(sent[at], rank, group) for at, rank in others]
    for work in works:
        work.wait()
