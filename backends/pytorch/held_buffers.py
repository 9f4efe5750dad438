"""Buffers that a model assigns anew, as in ``self.mean = ...``, stay where a replica holds them."""

from typing import List, Tuple

import torch

from backends.jobs.failure import refusal

Named = List[Tuple[str, torch.Tensor]]


def changing_buffers(module: torch.nn.Module) -> Named:
    """The floating-point buffers but for those with infinities, which are constants."""
    return [(name, value) for name, value in module.named_buffers() if _changes(value)]


def _changes(buffer: torch.Tensor) -> bool:
    return buffer.is_floating_point() and bool(torch.isfinite(buffer).all())


class HeldBuffers:
    """The changing buffers of a module, wherever it has them."""

    def __init__(self, module: torch.nn.Module) -> None:
        held = {id(buffer) for _, buffer in changing_buffers(module)}
        self._places = [
            (each, name, buffer)
            for each in module.modules()
            for name, buffer in each._buffers.items()
            if buffer is not None and id(buffer) in held
        ]

    def take(self) -> None:
        """Take the values of buffers that were assigned, after the backward pass, which needs both.

        One that is in no state_dict may grow, as tables of positions do; it is no part of what a
        replica holds from then on. Raises JobFailure where another changes its shape.
        """
        for module, name, held in self._places:
            now = module._buffers.get(name)
            if now is held:
                continue
            if now is not None and now.shape == held.shape:
                held.copy_(now.detach())
                module._buffers[name] = held
            elif name not in module._non_persistent_buffers_set:
                raise refusal(
                    "its buffer %s had the shape %s and now has %s; let it keep its shape, or register it with "
                    "persistent=False" % (name, tuple(held.shape), None if now is None else tuple(now.shape))
                )
