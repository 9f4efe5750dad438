"""Where torch computes: on an NVIDIA GPU, on an Apple one (Metal Performance Shaders), or neither.

On an Apple GPU there is no float64, no page-locked memory, and no torch.distributed.
"""

from typing import Any

import torch

from backends.frameworks.device import CPU, CUDA, MPS, chosen


def kind() -> str:
    """What the fleet file asks for, or the best there is: CUDA, MPS or CPU. Raises ValueError."""
    able = [CUDA] if torch.cuda.is_available() else []
    able += [MPS] if hasattr(torch, "mps") and torch.backends.mps.is_available() else []  # from torch 2.0 on
    return chosen("torch", able + [CPU])


def torch_device(accelerator: str) -> torch.device:
    """The first device of a kind."""
    return torch.device(accelerator)


def synchronise(accelerator: str) -> None:
    """Wait until all that was given to it is computed."""
    if accelerator == CUDA:
        torch.cuda.synchronize()
    elif accelerator == MPS:
        torch.mps.synchronize()


def placed(array: Any, device: torch.device) -> Any:
    """A tensor, or what else has ``to``, on a device; in float32 where that has no float64."""
    if device.type == MPS and getattr(array, "dtype", None) is torch.float64:
        return array.to(device, torch.float32)
    return array.to(device)


def placed_module(module: torch.nn.Module, accelerator: str) -> torch.nn.Module:
    """A module on the device of a kind; buffers in float64 become float32 where there is none."""
    return (module.float() if accelerator == MPS else module).to(torch_device(accelerator))
