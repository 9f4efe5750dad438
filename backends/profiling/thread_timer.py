"""Work of one thread is timed by the clock of that thread."""

from typing import Any, Callable, Tuple

from profilers import cpu_quota
from profilers.thread_times import thread_cpu_s


def timed(work: Callable[..., Any], *args: Any) -> Tuple[Any, float]:
    """What a call gives, and its seconds.

    By the clock of its thread, for those of a framework may spin on after a gradient. Divided by
    the share of a core that the device has: a quota would stretch a millisecond to a tenth of a
    second on the wall clock, or not show in it at all.
    """
    began = thread_cpu_s()
    result = work(*args)
    return result, (thread_cpu_s() - began) / min(1.0, cpu_quota.usable_cores())
