"""Files for TensorBoard, as TensorBoard reads them."""

import sys
from pathlib import Path
from types import ModuleType

# TensorBoard's own sign that it is to do without TensorFlow, which it would load for seconds.
sys.modules.setdefault("tensorboard.compat.notf", ModuleType("tensorboard.compat.notf"))

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Steps and values by tag."""
    found = EventAccumulator(str(folder)).Reload()
    return {tag: [(each.step, each.value) for each in found.Scalars(tag)] for tag in found.Tags()["scalars"]}
