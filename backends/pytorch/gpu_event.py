"""A mark in the work of a GPU."""

from typing import Any

import torch


def recorded() -> Any:
    """An event behind all work that was given to the GPU so far; two of them tell milliseconds."""
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
