"""The most bytes that the tensors of a piece of work take at once, as torch counts them itself.

The memory of a process also holds what was freed and kept, which hides a smaller peak.
"""

import os
from typing import Any, Callable, Optional

import torch


def live_bytes(work: Callable[[], Any]) -> Optional[int]:
    """Do the work; its bytes, or None where this torch does not tell."""
    if torch.cuda.is_available():
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
