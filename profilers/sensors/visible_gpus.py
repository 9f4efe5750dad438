"""CUDA_VISIBLE_DEVICES limits the GPUs of a program; NVIDIA's tools list all of them."""

from typing import List, Optional, Sequence, Tuple

CUDA_VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible_gpus(uuids: Sequence[str], setting: Optional[str]) -> Tuple[int, ...]:
    """Indices of the GPUs in a setting of CUDA_VISIBLE_DEVICES, in its order.

    uuids: of all GPUs, in PCI bus order.
    setting: indices or prefixes of UUIDs; None: all GPUs.

    As in CUDA, a name that fits no GPU, or several, ends the list. A slice of a GPU (MIG) stands
    for its GPU where its name contains it. Indices are in PCI bus order; CUDA orders GPUs of
    several kinds differently unless CUDA_DEVICE_ORDER is PCI_BUS_ID.
    """
    if setting is None:
        return tuple(range(len(uuids)))
    chosen: List[int] = []
    for entry in setting.split(","):
        fitting = _fitting(entry.strip(), uuids)
        if len(fitting) != 1:
            break
        if fitting[0] not in chosen:
            chosen += fitting
    return tuple(chosen)


def _fitting(entry: str, uuids: Sequence[str]) -> List[int]:
    if entry.isdigit():
        return [index for index in range(len(uuids)) if str(index) == entry]
    if entry.startswith("MIG-GPU-"):
        entry = entry[len("MIG-") :].partition("/")[0]
    return [index for index, uuid in enumerate(uuids) if entry.startswith("GPU-") and uuid.startswith(entry)]
