"""Blocks are the parts of a module whose parameters a member of a sharded run gathers at once.

They are those that a job names, or the elements of the module's ``nn.ModuleList``,
``nn.ModuleDict`` and ``nn.Sequential``, the outermost ones: layers of a transformer, stages of a
convolutional network. What is in none of them is gathered before the first block and stays until
the end of the step.
"""

import collections
from typing import Counter, Iterator, List, Sequence

from torch import nn

_CONTAINERS = (nn.ModuleList, nn.Sequential, nn.ModuleDict)
#: Smaller blocks are gathered with the rest: each costs the latency of three messages a step.
LEAST_BYTES = 1 << 20


def blocks_of(module: nn.Module, named: Sequence[nn.Module] = ()) -> List[nn.Module]:
    """The blocks, in the order in which they are registered; ``named``: by the job.

    A block shares no parameter with another part of the module: its gathered copy would not do. One
    that is named within another is a part of that.
    """
    held = collections.Counter(id(each) for each in _uses(module))
    within = {id(part) for block in named for part in block.modules() if part is not block}
    found = [each for each in named or _candidates(module) if id(each) not in within]
    return [each for each in found if 4 * elements(each) >= LEAST_BYTES and _has_its_own(each, held)]


def _candidates(module: nn.Module) -> Iterator[nn.Module]:
    """The outermost elements of containers; only what has a forward pass can be gathered for it."""
    for child in module.children():
        if isinstance(module, _CONTAINERS) and not isinstance(child, _CONTAINERS):
            yield from [] if type(child).forward is nn.Module.forward else [child]
        else:
            yield from _candidates(child)


def elements(block: nn.Module) -> int:
    """Elements of its parameters."""
    return sum(int(each.numel()) for each in block.parameters())


def _has_its_own(block: nn.Module, held: Counter[int]) -> bool:
    inside = collections.Counter(id(each) for each in _uses(block))
    return all(held[one] == count for one, count in inside.items())


def _uses(module: nn.Module) -> Iterator[nn.Parameter]:
    """The parameters, those that several modules share as often as they do."""
    for each in module.modules():
        yield from (parameter for parameter in each._parameters.values() if parameter is not None)
