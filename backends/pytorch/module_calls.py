"""A call of a module: its tensors have names, and others can take their places."""

from collections.abc import Mapping
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch import nn

from backends.frameworks.call_text import call_text

Named = List[Tuple[str, torch.Tensor]]


class ModuleCall(NamedTuple):
    """What a module is called with: tensors, also in tuples, lists and dictionaries, and others."""

    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]

    def tensors(self) -> Named:
        """Those in it, in a fixed order."""
        found = [each for place, value in enumerate(self.args) for each in _tensors(value, "input_%d" % place)]
        return found + [each for name, value in self.kwargs.items() for each in _tensors(value, name)]

    def with_tensors(self, tensors: Any) -> "ModuleCall":
        """The same call of other tensors, which are given in this order."""
        others = iter(tensors)
        args = tuple(_replaced(value, others) for value in self.args)
        return ModuleCall(args, {name: _replaced(value, others) for name, value in self.kwargs.items()})

    def text(self) -> str:
        """Python for its arguments, with zeros for the tensors."""
        named = ["%s=%s" % (name, call_text(value, _zeros)) for name, value in self.kwargs.items()]
        return ", ".join([call_text(value, _zeros) for value in self.args] + named)


class OfTensors(nn.Module):
    """Calls a network with tensors alone, and gives its tensors alone, as exported graphs do.

    call: gives the form, and the values that are no tensors.
    """

    def __init__(self, network: nn.Module, call: ModuleCall) -> None:
        super().__init__()
        self.network = network
        self._call = call

    def forward(self, *tensors: torch.Tensor) -> Any:
        call = self._call.with_tensors(tensors)
        outputs = tuple(tensor for _, tensor in output_tensors(self.network(*call.args, **call.kwargs)))
        return outputs if len(outputs) > 1 else outputs[0]


def output_tensors(outputs: Any) -> Named:
    """The tensors that a module gives, by name; those of a dictionary have its keys."""
    if isinstance(outputs, Mapping):
        return [each for key, value in outputs.items() for each in _tensors(value, str(key))]
    return list(_tensors(outputs, "output"))


def _tensors(value: Any, name: str) -> Iterator[Tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _tensors(each, "%s_%s" % (name, key))
    elif isinstance(value, (tuple, list)):
        for place, each in enumerate(value):
            yield from _tensors(each, "%s_%d" % (name, place))


def _replaced(value: Any, others: Iterator[torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return next(others)
    if isinstance(value, Mapping):
        return {key: _replaced(each, others) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        parts = [_replaced(each, others) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _zeros(value: Any) -> Optional[str]:
    is_tensor = isinstance(value, torch.Tensor)
    return "torch.zeros(%r, dtype=%s)" % (tuple(value.shape), value.dtype) if is_tensor else None
