"""How long a device may be timed: profiling is to cost little beside the training that it plans."""

import threading

#: Seconds of timing a device and a model, as a share of the planned training. With what follows the timing, smaller
#: batches and the server's update, a profile stays below a hundredth.
SHARE = 0.008


class Allowance:
    """The time for each model on each device, while all devices are timed at once. Thread-safe.

    No cluster makes more steps a second than its devices do together without a network; so a device may be timed
    for as long as SHARE of ``steps`` would take all of them, less ``common_s``, what each model has to bear of that
    which is measured for all. A device that is slow beside the others thus gets few steps: it also contributes few.
    """

    def __init__(self, steps: int, common_s: float) -> None:
        self._steps = SHARE * steps
        self._common_s = common_s
        self._step_s: dict[str, dict[str, float]] = {}
        self._lock = threading.Lock()

    def note(self, device: str, model: str, step_s: float) -> None:
        """What a step of a model takes a device, as far as it is known by now."""
        with self._lock:
            self._step_s.setdefault(model, {})[device] = step_s

    def spent(self, model: str, elapsed_s: float) -> bool:
        """Whether a device that has worked on a model for so long should come to an end."""
        with self._lock:
            rate = sum(1 / step_s for step_s in self._step_s.get(model, {}).values() if step_s > 0)
        return (elapsed_s + self._common_s) * rate > self._steps
