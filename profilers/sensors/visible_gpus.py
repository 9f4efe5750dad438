"""Which GPUs a program here may use: NVIDIA's tools list all of them, CUDA heeds CUDA_VISIBLE_DEVICES."""

from typing import List, Optional, Sequence, Tuple

VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible(uuids: Sequence[str], setting: Optional[str]) -> Tuple[int, ...]:
    """Indices of the GPUs that a setting of the variable leaves, in its order; None is no setting: all.

    uuids: of all GPUs, in the order of the bus. A setting names indices or beginnings of UUIDs; as for CUDA, what
    follows a name that fits no GPU, or more than one, is not seen. A slice of a GPU (MIG) stands for that GPU
    where its name tells which. Indices are taken in the order of the bus: CUDA's own order differs from it where
    GPUs of several kinds are mixed and CUDA_DEVICE_ORDER is not PCI_BUS_ID.
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
