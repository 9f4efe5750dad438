"""Where not even the smallest batch fits: the smallest change of the training by which it would.

Weights are there in any case. Each trained parameter has a gradient, and what the optimizer keeps.
"""

import math

from backends.frameworks.optimizer import OWN, SLOT_NAMES, UPDATES
from profilers.records.steps import ModelSize

#: Arrays of the model's size that a job's own optimizer is taken to keep: most are Adam.
OF_OWN = 2
SMALLER = "take smaller samples or a smaller model"


def kept_arrays(optimizer: str) -> int:
    """Arrays of the trained parameters' size that an optimizer keeps."""
    return OF_OWN if optimizer == OWN else sum(name != UPDATES for name in SLOT_NAMES[optimizer])


def smallest_change(size: ModelSize, kept: float, needed_bytes: float, usable_bytes: float) -> str:
    """What would help on this device; "" where nothing of the model's parameters would.

    kept: arrays of the trained parameters' size that the optimizer and the exchange keep.
    needed_bytes: of a memory, for the smallest step. usable_bytes: what a process may have of it.
    """
    weights = float(size.parameter_bytes + size.frozen_bytes + size.state_bytes)
    besides = float((1 + kept) * size.parameter_bytes)
    if weights > usable_bytes:
        return "its weights alone take %s: take a smaller model" % in_bytes(weights)
    if needed_bytes - besides <= usable_bytes:
        return "train fewer parameters, as LoRA does (docs/training.md): gradients and the optimizer take %s" % (
            in_bytes(besides)
        )
    return ""


def in_bytes(value: float) -> str:
    """Three digits with a decimal prefix."""
    power = min(4, int(math.log10(max(1.0, value)) // 3))
    return "%.3g %sB" % (value / 1000.0**power, ("", "k", "M", "G", "T")[power])
