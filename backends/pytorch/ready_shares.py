"""When in the backward pass each parameter has its gradient, as DistributedDataParallel sees it."""

import time
from typing import Any, Callable, List, Sequence

import numpy as np
import torch


def ready_shares(parameters: Sequence[torch.nn.Parameter], compute: Callable[[], Any], on_gpu: bool) -> np.ndarray:
    """As ``Replica.ready_shares``. A parameter that gets no gradient is ready at the end.

    On a processor they are shares of this process's processor time, which neither a quota nor
    another process stretches.
    """
    marks: List[Any] = [None] * len(parameters)

    def hook(index: int) -> Callable[[torch.Tensor], None]:
        def mark(gradient: torch.Tensor) -> None:
            marks[index] = _now(on_gpu)  # of a batch in parts, the last one counts

        return mark

    handles = [parameter.register_hook(hook(index)) for index, parameter in enumerate(parameters)]
    try:
        began = _now(on_gpu)
        compute()
        ended = _now(on_gpu)
    finally:
        for handle in handles:
            handle.remove()
    if on_gpu:
        torch.cuda.synchronize()
    total = _between(began, ended, on_gpu)
    return np.array([1.0 if mark is None else _between(began, mark, on_gpu) / total for mark in marks])


def gpu_event() -> Any:
    """An event behind all work that was given to the GPU so far; two of them tell milliseconds."""
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _now(on_gpu: bool) -> Any:
    """Processor seconds of this process; on a GPU an event behind all work that was given to it."""
    return gpu_event() if on_gpu else time.process_time()


def _between(began: Any, ended: Any, on_gpu: bool) -> float:
    return float(began.elapsed_time(ended) if on_gpu else ended - began)
