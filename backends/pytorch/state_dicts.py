"""A module's ``state_dict`` with the weights of a checkpoint, which its own class loads."""

import copy
import io
from typing import Any, Dict, List, Tuple

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

#: Modules around a user's own, by the names of their classes, and what they call it.
WRAPPERS = {"OptimizedModule": "_orig_mod", "DataParallel": "module"}


def put(arrays: Dict[str, np.ndarray], module: nn.Module) -> nn.Module:
    """Give a module the arrays of a checkpoint; it is not called for that.

    arrays: by name, float32. What is in no checkpoint, such as buffers of whole numbers, stays as
    it is. Returns the module, on the CPU and in evaluation.
    Raises ValueError where the checkpoint is of another model.
    """
    if not isinstance(module, nn.Module):
        raise ValueError("its model is no torch.nn.Module any more")
    module = module.cpu().eval()
    missing = [name for name, _ in module.named_parameters() if name not in arrays]
    unknown = unknown_to(module, arrays)
    if missing or unknown:
        lacks = ["the checkpoint has no %s" % ", ".join(missing)] * bool(missing)
        has = ["the model has no %s" % ", ".join(unknown)] * bool(unknown)
        raise ValueError("the checkpoint is of another model: %s" % " and ".join(lacks + has))
    named = _named(module)
    for name, array in arrays.items():
        _fill(name, named[name], array)
    return module


def unknown_to(module: Any, arrays: Dict[str, np.ndarray]) -> List[str]:
    """Names of arrays that a module does not have, yet: a forward may make parts of it."""
    named = _named(module) if isinstance(module, nn.Module) else {}
    return [name for name in arrays if name not in named]


def state_of(module: nn.Module) -> Dict[str, Any]:
    """What ``load_state_dict`` takes, as it is now; tensors with two names stay one."""
    state: Dict[str, Any] = copy.deepcopy(module.state_dict())
    return state


def unwrapped(module: Any) -> Tuple[Any, str]:
    """The user's own module in one that ``torch.compile`` has made of it, and its place there."""
    place = ""
    while type(module).__name__ in WRAPPERS:
        name = WRAPPERS[type(module).__name__]
        module, place = getattr(module, name), "%s.%s" % (place, name)
    return module, place


def of_arrays(arrays: Dict[str, np.ndarray]) -> Dict[str, Any]:
    """The arrays of a checkpoint alone, as tensors."""
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


def apart(state: Dict[str, Any]) -> Dict[str, torch.Tensor]:
    """Tensors that share no memory. Raises ValueError for what is no tensor."""
    for name, value in state.items():
        if not isinstance(value, torch.Tensor):
            raise ValueError("its state has %s, which is no tensor" % name)
    return {name: value.clone().contiguous() for name, value in state.items()}


def pth(state: Dict[str, Any]) -> bytes:
    """The content of a file that ``torch.load`` reads."""
    stream = io.BytesIO()
    torch.save(state, stream)
    return stream.getvalue()


def _named(module: nn.Module) -> Dict[str, torch.Tensor]:
    return dict(module.named_parameters(), **dict(module.named_buffers()))


def _fill(name: str, tensor: torch.Tensor, array: np.ndarray) -> None:
    if is_lazy(tensor):
        tensor.materialize(array.shape)  # type: ignore[attr-defined]
    if tuple(tensor.shape) != array.shape:
        raise ValueError(
            "the checkpoint is of another model: its %s is %s, that of the model is %s"
            % (name, array.shape, tuple(tensor.shape))
        )
    tensor.data = torch.from_numpy(array.copy()).to(tensor.dtype)
