"""Where not even the smallest batch fits: the smallest change of the training by which it would.

Weights are there in any case. Each trained parameter has a gradient, and what the optimizer keeps.
"""

import math
from typing import List

from backends.frameworks.optimizer import OWN, SLOT_NAMES, UPDATES
from backends.profiling.share_memory import member_bytes, replica_bytes
from profilers.records.steps import ModelSize

#: Arrays of the model's size that a job's own optimizer is taken to keep: most are Adam.
OF_OWN = 2
#: More devices than anybody has of one kind.
MOST_MEMBERS = 16


def kept_arrays(optimizer: str) -> int:
    """Arrays of the trained parameters' size that an optimizer keeps."""
    return OF_OWN if optimizer == OWN else sum(name != UPDATES for name in SLOT_NAMES[optimizer])


def remedies(size: ModelSize, kept: int, needed_bytes: float, usable_bytes: float) -> str:
    """What would help, the smallest change first.

    kept: arrays of the trained parameters' size that the optimizer keeps.
    needed_bytes: of a memory, for the smallest step. usable_bytes: what a process may have of it.
    """
    weights = float(size.parameter_bytes + size.frozen_bytes + size.state_bytes)
    besides = float((1 + kept) * size.parameter_bytes)
    found: List[str] = []
    if weights > usable_bytes:
        found.append("its weights alone take %s: take a smaller model" % in_bytes(weights))
    elif needed_bytes - besides <= usable_bytes:
        found.append(
            "train fewer parameters, as LoRA does (docs/training.md): gradients and the optimizer take %s"
            % in_bytes(besides)
        )
    devices = members_to_divide(size, kept, needed_bytes, usable_bytes)
    if devices:
        found.append("divide it among %d such devices by --engine torch:shard=full" % devices)
    return ", or ".join(found) or "take smaller samples or a smaller model"


def members_to_divide(size: ModelSize, kept: int, needed_bytes: float, usable_bytes: float) -> int:
    """The fewest devices of which each has room for its share of the model; 0 for no number."""
    besides = needed_bytes - replica_bytes(size, kept)
    counts = range(2, MOST_MEMBERS + 1)
    return next((n for n in counts if besides + member_bytes(size, kept, n) <= usable_bytes), 0)


def in_bytes(value: float) -> str:
    """Three digits with a decimal prefix."""
    power = min(4, int(math.log10(max(1.0, value)) // 3))
    return "%.3g %sB" % (value / 1000.0**power, ("", "k", "M", "G", "T")[power])
