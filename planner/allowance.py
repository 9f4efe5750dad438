"""How long a device may be timed: profiling is to cost little beside the training that it plans."""

import threading

#: Seconds a device may spend on a model, as a share of the planned training; the rest of a hundredth is for a third
#: visit, which takes the fewest steps.
SHARE = 0.007


class Allowance:
    """The time for each model on each of ``devices`` devices, which are timed at once. Thread-safe.

    No cluster makes more steps a second than its devices do together without a network; so a device may be timed
    for as long as SHARE of ``steps`` would take all of them, less ``common_s``, what each model has to bear of that
    which is measured for all. A device that is slow beside the others thus gets few steps: it also contributes few.
    """

    def __init__(self, steps: int, devices: int, common_s: float) -> None:
        self._steps = SHARE * steps
        self._devices = devices
        self._common_s = common_s
        self._rates: dict[str, dict[str, float]] = {}
        self._lock = threading.Lock()

    def note(self, device: str, model: str, step_s: float) -> None:
        """What a step of a model takes a device, as far as it is known by now."""
        with self._lock:
            self._rates.setdefault(model, {})[device] = 1 / max(step_s, 1e-9)

    def spent(self, model: str, needed_s: float) -> bool:
        """Whether a device should come to an end that will have needed so long for a model at the least."""
        with self._lock:
            known = list(self._rates.get(model, {}).values())
        # One that has not been heard of may be as fast as the fastest.
        rate = sum(known) + (self._devices - len(known)) * max(known, default=0.0)
        return (needed_s + self._common_s) * rate > self._steps
