"""Memory that PyTorch's arrays take on the GPU, and errors for want of memory."""

import gc
from typing import Optional

import torch

from backends.frameworks.base import AcceleratorMemory
from profilers import tegra
from profilers.file_tree import FileTree

#: Parts of the messages of torch's RuntimeErrors for want of memory, of a GPU and of the host.
SHORT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED")


def forget_peak_memory() -> None:
    """Return cached memory to the GPU and begin anew with its peak."""
    gc.collect()  # of what an exception or a former replica still holds
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def accelerator_memory() -> Optional[AcceleratorMemory]:
    """Memory of the first GPU, with the workspaces of convolutions; None without a GPU."""
    if not torch.cuda.is_available():
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
