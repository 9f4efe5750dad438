"""Activation checkpointing: blocks of a model keep their inputs, and compute the rest once more.

Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016, by torch.utils.checkpoint. The
backward pass calls a block again; random numbers and autocast are as in its first call. Buffers,
such as running statistics, are then those of before the first call, and what the second one makes
of them is dropped.
"""

import functools
import inspect
import itertools
import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_unflatten
from torch.utils.checkpoint import checkpoint

from backends.jobs.failure import refusal

NO_BLOCKS = (
    "--activation-checkpointing found no blocks in the model: no nn.Sequential, and no nn.ModuleList of modules with "
    "parts; name them in the job, as in blocks=list(model.layers), or leave the option out"
)
CHANGED = (
    "--activation-checkpointing cannot compute %s again: its input was changed in place; let the model change a copy, "
    "name other blocks in the job (blocks=...), or leave the option out"
)
NOT_CALLED = (
    "--activation-checkpointing found blocks in the model, of which its forward calls none as a module; let it call "
    "them, name others in the job, as in blocks=list(model.layers), or leave the option out"
)
NO_TENSORS = (
    "--activation-checkpointing cannot follow gradients through what %s gives with this torch; let it give tensors, "
    "or tuples, lists or dicts of them, name other blocks in the job (blocks=...), or leave the option out"
)
#: Torch 1.10 has only the kind that takes the gradients of a block in a backward pass of its own.
_HAS_OTHER_KIND = "use_reentrant" in inspect.signature(checkpoint).parameters

Forward = Callable[..., Any]
Buffers = Dict[str, Optional[torch.Tensor]]


class CheckpointedBlocks:
    """The blocks of a model, which keep their inputs only.

    named: the blocks; without any, what the model's sequences and lists hold.
    Raises ValueError where there is none.
    """

    def __init__(self, model: nn.Module, named: Sequence[nn.Module] = ()) -> None:
        self._is_called = False
        self._found: Set[int] = set()  # a module may be in several places
        for block in named:
            self._checkpoint(block)
        if not named and not self._checkpoint_within(model):
            raise ValueError(NO_BLOCKS)
        for config in [getattr(module, "config", None) for module in model.modules()]:
            if getattr(config, "use_cache", False):  # transformers' keys and values, to which a second call would add
                config.use_cache = False  # type: ignore[union-attr]

    def require_call(self) -> None:
        """Raises JobFailure where a forward pass has called none of them."""
        if not self._is_called:
            raise refusal(NOT_CALLED)

    def _checkpoint(self, block: nn.Module) -> None:
        if id(block) not in self._found:
            self._found.add(id(block))
            block.forward = self._noted([block], block.forward)  # type: ignore[method-assign]

    def _checkpoint_within(self, module: nn.Module) -> int:
        """Checkpoint what a module's outermost sequences and lists hold; returns the number."""
        if _is_sequence(module):
            return self._checkpoint_sequence(module)
        if isinstance(module, nn.ModuleList):
            return sum(self._checkpoint_element(each) for each in module if _is_compound(each))
        return sum(map(self._checkpoint_within, module.children()))

    def _checkpoint_element(self, element: nn.Module) -> int:
        if _is_sequence(element) or isinstance(element, (nn.ModuleList, nn.ModuleDict)):
            return self._checkpoint_within(element)
        self._checkpoint(element)
        return 1

    def _checkpoint_sequence(self, sequence: nn.Module) -> int:
        """Where one module has most of the parameters, it has the blocks; returns their number."""
        if id(sequence) in self._found:
            return 1
        self._found.add(id(sequence))
        # Not children(), which gives a layer once that the sequence has several times.
        layers = [each for each in sequence._modules.values() if each is not None]
        largest = max(layers, key=_elements, default=sequence)
        if _is_compound(largest) and 2 * _elements(largest) > _elements(sequence):
            within = self._checkpoint_within(largest)
            if within:
                return within
        segments = _segments(layers)
        sequence.forward = _in_turn([self._of_segment(each) for each in segments])  # type: ignore[method-assign]
        return len(segments)

    def _of_segment(self, layers: List[nn.Module]) -> Forward:
        """A sequence within a sequence has blocks of its own."""
        if _is_sequence(layers[0]):
            self._checkpoint_sequence(layers[0])
            return _in_turn(layers)
        return self._noted(layers, _in_turn(layers))

    def _noted(self, modules: Sequence[nn.Module], forward: Forward) -> Forward:
        """The block of these modules, whose calls are noted."""
        recomputed = _recomputed(modules, forward)

        def call(*args: Any, **named: Any) -> Any:
            self._is_called = True
            return recomputed(*args, **named)

        return call


def _segments(layers: Sequence[nn.Module]) -> List[List[nn.Module]]:
    """A module with parts is a block; of n single layers in a row, about √n are one together.

    A layer that changes its input in place belongs to the one before it, whose output that is.
    """
    units: List[List[nn.Module]] = []
    for layer in layers:
        if units and getattr(layer, "inplace", False):
            units[-1].append(layer)
        else:
            units.append([layer])
    segments: List[List[nn.Module]] = []
    for with_parts, run in itertools.groupby(units, lambda unit: _is_compound(unit[0])):
        alike = list(run)
        size = 1 if with_parts else math.ceil(len(alike) / math.ceil(math.sqrt(len(alike))))
        for start in range(0, len(alike), size):
            segments.append([layer for unit in alike[start : start + size] for layer in unit])
    return segments


def _is_sequence(module: nn.Module) -> bool:
    return isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward


def _elements(module: nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())


def _is_compound(module: nn.Module) -> bool:
    return next(module.children(), None) is not None


def _in_turn(functions: Sequence[Forward]) -> Forward:
    """As nn.Sequential calls its modules."""

    def forward(given: Any) -> Any:
        for function in functions:
            given = function(given)
        return given

    return forward


def _recomputed(modules: Sequence[nn.Module], forward: Forward) -> Forward:
    """A function of these modules that keeps its inputs, where gradients are to be taken."""
    buffers = [each._buffers for module in modules for each in module.modules()]

    def call(*args: Any, **named: Any) -> Any:
        if not torch.is_grad_enabled():
            return forward(*args, **named)
        name = type(modules[0]).__name__
        if _HAS_OTHER_KIND:
            block = _Block(name, buffers, functools.partial(forward, **named), tree_flatten((args, named))[0])
            return checkpoint(functools.partial(block, *args), use_reentrant=False)
        inputs, form = tree_flatten((args, named))
        tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
        if not any(each.requires_grad for each in itertools.chain(tensors, *[each.parameters() for each in modules])):
            return forward(*args, **named)  # that kind would take a gradient of what has none
        flat = _Flat(name, forward, form)
        return flat.outputs(_reentrant(_Block(name, buffers, flat, inputs), inputs))

    return call


def _reentrant(block: "_Block", inputs: Sequence[Any]) -> Any:
    """That kind takes no gradient where none of the inputs has one."""
    return checkpoint(lambda _, *given: block(*given), torch.zeros((), requires_grad=True), *inputs)


class _Flat:
    """A function of the leaves of its inputs that gives those of its outputs.

    Torch 1.10 follows gradients through tensors only that are given one by one.
    """

    def __init__(self, name: str, forward: Forward, inputs: Any) -> None:
        self._name = name
        self._forward = forward
        self._form_of_inputs = inputs

    def __call__(self, *leaves: Any) -> Sequence[Any]:
        args, named = tree_unflatten(list(leaves), self._form_of_inputs)
        found, self._form = tree_flatten(self._forward(*args, **named))
        if not all(each is None or isinstance(each, (torch.Tensor, int, float, str)) for each in found):
            raise refusal(NO_TENSORS % self._name)
        return tuple(found)

    def outputs(self, leaves: Sequence[Any]) -> Any:
        """As the function gives them."""
        return tree_unflatten(list(leaves), self._form)


class _Block:
    """A function that is called in the forward pass, and again in the backward pass.

    buffers: of the modules that it calls, by name. inputs: what it is given, the parts of each.
    """

    def __init__(self, name: str, buffers: Sequence[Buffers], forward: Forward, inputs: Sequence[Any]) -> None:
        self._name = name
        self._places = [(own, key) for own in buffers for key, buffer in own.items() if buffer is not None]
        self._forward = forward
        self._inputs = [each for each in inputs if isinstance(each, torch.Tensor)]
        self._versions = [each._version for each in self._inputs]
        self._before: List[Optional[torch.Tensor]] = []
        self._called = False

    def __call__(self, *given: Any) -> Any:
        if self._called:
            return self._again(given)
        self._called = True
        before = [(buffer, buffer._version, buffer.clone()) for buffer in self._buffers()]
        outputs = self._forward(*given)
        self._before = [
            None if now is buffer and now._version == version else values
            for (buffer, version, values), now in zip(before, self._buffers())
        ]
        return outputs

    def _again(self, given: Sequence[Any]) -> Any:
        if [each._version for each in self._inputs] != self._versions:
            raise refusal(CHANGED % self._name)
        now = self._buffers()
        for (own, key), buffer, before in zip(self._places, now, self._before):
            # Batch normalisation changes its statistics unseen; what they were makes no difference.
            own[key] = (buffer if before is None else before).clone()
        try:
            return self._forward(*given)
        finally:
            for (own, key), buffer in zip(self._places, now):
                own[key] = buffer

    def _buffers(self) -> List[torch.Tensor]:
        return [own[key] for own, key in self._places]  # type: ignore[misc]
