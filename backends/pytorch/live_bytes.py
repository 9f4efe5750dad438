"""The most bytes that the tensors of a piece of work take at once, as torch counts them itself.

The memory of a process also holds what was freed and kept, which hides a smaller peak.
"""

import os
from typing import Any, Callable, Optional

import torch

from backends.frameworks.device import CUDA, MPS
from backends.pytorch import accelerators


def live_bytes(work: Callable[[], Any]) -> Optional[int]:
    """Do the work; its bytes where it computes, or None where this torch does not tell."""
    kind = accelerators.kind()
    if kind == MPS:  # torch counts no peak there, and its profiler only tensors of the host
        work()
        return None
    if kind == CUDA:
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        work()
        return int(torch.cuda.max_memory_allocated() - before)
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else the profiler writes to stderr
    with torch.autograd.profiler.profile(profile_memory=True) as seen:
        work()
    try:
        events = [each for each in seen.kineto_results.events() if each.name() == "[memory]"]
        changes = sorted((each.start_ns(), each.nbytes()) for each in events)
    except AttributeError:  # an older torch, or one without its profiler
        return None
    live = most = 0
    for _, change in changes:
        live += change
        most = max(most, live)
    return most or None
