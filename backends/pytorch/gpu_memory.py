"""Memory that PyTorch's arrays take on the GPU, and errors for want of memory."""

import gc
from typing import Optional

import torch

from backends.frameworks.base import AcceleratorMemory
from backends.frameworks.device import CUDA, MPS
from backends.pytorch import accelerators
from profilers import tegra
from profilers.file_tree import FileTree

#: Parts of the messages of torch's RuntimeErrors for want of memory, of a GPU and of the host.
SHORT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED")


def forget_peak_memory() -> None:
    """Return cached memory to the GPU and begin anew with its peak."""
    gc.collect()  # of what an exception or a former replica still holds
    kind = accelerators.kind()
    if kind == CUDA:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    elif kind == MPS:
        torch.mps.empty_cache()


def accelerator_memory() -> Optional[AcceleratorMemory]:
    """Memory of the first GPU, with the workspaces of convolutions; None without a GPU.

    torch keeps what is freed on an Apple GPU, so what the driver has given to it is the peak.
    """
    kind = accelerators.kind()
    if kind == MPS:
        most = getattr(torch.mps, "recommended_max_memory", None)  # of torch 2.5
        return AcceleratorMemory(torch.mps.driver_allocated_memory(), most and most(), True)
    if kind != CUDA:
        return None
    return AcceleratorMemory(torch.cuda.max_memory_allocated(), _available_bytes(), _is_shared())


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that the GPU's or the host's memory was short."""
    if isinstance(error, MemoryError):
        return True
    # torch.cuda.OutOfMemoryError is a RuntimeError, and of torch 1.13.
    return isinstance(error, RuntimeError) and any(part in str(error) for part in SHORT_OF_MEMORY)


def _available_bytes() -> Optional[int]:
    if not hasattr(torch.cuda, "mem_get_info"):  # it is of torch 1.11
        return None
    free, _ = torch.cuda.mem_get_info()
    return int(free) + int(torch.cuda.memory_reserved())


def _is_shared() -> bool:
    integrated = getattr(torch.cuda.get_device_properties(0), "is_integrated", False)
    return bool(integrated) or tegra.is_tegra(FileTree("/"))
