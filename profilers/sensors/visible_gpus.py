"""Which GPUs CUDA may use, by the environment variable that says so. Pure."""

from types import MappingProxyType
from typing import List, Mapping, Optional, Sequence, Tuple

CUDA_VARIABLE = "CUDA_VISIBLE_DEVICES"
ORDER_VARIABLE = "CUDA_DEVICE_ORDER"
#: The order in which sensors number GPUs.
SENSORS_ORDER = "PCI_BUS_ID"


def visible_gpus(
    uuids: Sequence[str], setting: Optional[str], slices: Mapping[str, int] = MappingProxyType({})
) -> Tuple[int, ...]:
    """Indices of the GPUs in a setting of CUDA_VISIBLE_DEVICES, in its order; None: all GPUs.

    uuids: of all GPUs, in PCI bus order, of which the setting holds indices or prefixes.
    slices: the GPU of each slice (MIG), by the UUID of the slice, for which the GPU stands.
    As in CUDA, a name that fits no GPU, or several, ends the list. See ``numbered_otherwise``.
    """
    if setting is None:
        return tuple(range(len(uuids)))
    chosen: List[int] = []
    for entry in setting.split(","):
        fitting = _fitting(entry.strip(), uuids, slices)
        if len(fitting) != 1:
            break
        if fitting[0] not in chosen:
            chosen += fitting
    return tuple(chosen)


def _fitting(entry: str, uuids: Sequence[str], slices: Mapping[str, int]) -> List[int]:
    if entry.isdigit():
        return [index for index in range(len(uuids)) if str(index) == entry]
    if entry.startswith("MIG-GPU-"):
        entry = entry[len("MIG-") :].partition("/")[0]
    elif entry.startswith("MIG-"):
        of_one = [0] if len(uuids) == 1 else []
        return sorted({index for name, index in slices.items() if name.startswith(entry)}) or of_one
    return [index for index, uuid in enumerate(uuids) if entry.startswith("GPU-") and uuid.startswith(entry)]


def numbered_otherwise(count: int, setting: Optional[str], order: Optional[str]) -> Optional[str]:
    """Why CUDA's indices may be those of other GPUs than the sensors'; None for no doubt."""
    by_index = any(entry.strip().isdigit() for entry in (setting or "").split(","))
    if count < 2 or not by_index or order in (None, SENSORS_ORDER):
        return None
    return "%s=%s numbers GPUs otherwise than their sensors, so that %s=%s may be others; set %s=%s, or give UUIDs" % (
        ORDER_VARIABLE, order, CUDA_VARIABLE, setting, ORDER_VARIABLE, SENSORS_ORDER,
    )  # fmt: skip


def none_visible(setting: Optional[str], count: int) -> str:
    """The reason why none of ``count`` GPUs is read."""
    return "%s=%s leaves none of %d GPUs" % (CUDA_VARIABLE, setting, count)
