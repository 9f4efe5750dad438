"""A time budget keeps profiling below a hundredth of the training that it plans."""

import threading

#: Share of the planned training that a device may spend on timing a model.
#: The rest of the hundredth is for a third repeat, which takes the fewest steps.
SHARE = 0.007


class TimeBudget:
    """The time that each of ``devices`` devices may spend on each model. Thread-safe.

    All devices together, without a network, are the fastest cluster imaginable. A device may be
    timed for SHARE of what that cluster takes for ``steps``, less ``common_s``.
    A slow device among fast ones thus gets few steps; it also contributes few.

    common_s: a model's part of the seconds spent on what is measured for all models.
    """

    def __init__(self, steps: int, devices: int, common_s: float) -> None:
        self._steps = SHARE * steps
        self._devices = devices
        self._common_s = common_s
        self._rates: dict[str, dict[str, float]] = {}
        self._lock = threading.Lock()

    def note(self, device: str, model: str, step_s: float) -> None:
        """Take the latest estimate of a model's step on a device."""
        with self._lock:
            self._rates.setdefault(model, {})[device] = 1 / max(step_s, 1e-9)

    def spent(self, model: str, needed_s: float) -> bool:
        """Whether a device should stop timing a model.

        needed_s: the fewest seconds after which it will have ended.
        """
        with self._lock:
            known = list(self._rates.get(model, {}).values())
        # A device without an estimate yet may be as fast as the fastest.
        rate = sum(known) + (self._devices - len(known)) * max(known, default=0.0)
        return (needed_s + self._common_s) * rate > self._steps
