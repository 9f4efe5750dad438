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
            (own, name, buffer)
            for each in module.modules()
            for own in [each._buffers]
            for name, buffer in own.items()
            if buffer is not None and id(buffer) in held
        ]

    def take(self) -> None:
        """Take the values of buffers that were assigned, after the backward pass, which needs both.

        Raises JobFailure where the shape of one is another.
        """
        for own, name, held in self._places:
            now = own.get(name)
            if now is held:
                continue
            if now is None or now.shape != held.shape:
                shape = None if now is None else tuple(now.shape)
                raise refusal(
                    "its buffer %s had the shape %s and now has %s; let it keep its shape, or be no buffer"
                    % (name, tuple(held.shape), shape)
                )
            held.copy_(now.detach())
            own[name] = held
