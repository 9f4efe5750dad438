"""Members gather shares, and reduce gradients to shares, over gloo; a clock times the waiting.

torch's own reduce-scatter over gloo is an all-reduce, of which each member keeps a part: it sends
twice as much as is needed. Here each member sends every other one its part.
"""

import time
from typing import Any, Optional

import torch
import torch.distributed as dist

from backends.frameworks.process_group import ExchangeTime, OnWait

#: The first name is that of torch 2.13 on, which warns of the second.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


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
            found = output_tensor.cpu()
            _all_gather(found, input_tensor.cpu(), group=group)
            output_tensor.copy_(found)
        return None


class MeanOfShares(_Communication):
    """This member's share of the mean of all gradients of a block."""

    def __call__(
        self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, op: Any, async_op: bool = False
    ) -> Optional[Any]:
        with self._clock:
            parts = torch.empty_like(input_tensor, device="cpu")
            dist.all_to_all_single(parts, input_tensor.cpu(), group=group)
        output_tensor.copy_(parts.view(group.size(), -1).mean(0))
        return None
