"""A layout names the arrays that lie one after the other in flat float32 buffers."""

import functools
import operator
from typing import Iterable, List, NamedTuple, Sequence, Tuple


class Variable(NamedTuple):
    """One named array inside a flat buffer: shape, and its elements [start, start + size)."""

    name: str
    shape: Tuple[int, ...]
    start: int
    size: int

    @property
    def span(self) -> Tuple[int, int]:
        """Start and end of its elements in the flat buffer."""
        return self.start, self.start + self.size

    @property
    def part(self) -> slice:
        """Its elements in the flat buffer."""
        return slice(*self.span)


def elements(shape: Sequence[int]) -> int:
    """How many an array of this shape has."""
    return int(functools.reduce(operator.mul, shape, 1))


def consecutive(named_shapes: Iterable[Tuple[str, Sequence[int]]]) -> Tuple[Variable, ...]:
    """Variables of these names and shapes, one after the other in a flat buffer."""
    found: List[Variable] = []
    start = 0
    for name, shape in named_shapes:
        found.append(Variable(name, tuple(shape), start, elements(shape)))
        start += found[-1].size
    return tuple(found)


class Layout(NamedTuple):
    """The arrays that lie one after the other in flat buffers.

    The members and checkpoints of a run must agree on it.
    """

    variables: Tuple[Variable, ...]  # in the buffer of weights
    state_variables: Tuple[Variable, ...]  # in the buffer of state

    def check(self) -> None:
        """Raises ValueError unless all elements have one place each."""
        for variables in self:
            end = 0
            for variable in variables:
                if variable.start != end or variable.size != elements(variable.shape):
                    raise ValueError("%s does not lie behind the one before it, or has another size" % variable.name)
                end += variable.size

    @property
    def parameters(self) -> int:
        """Number of trained elements."""
        return sum(variable.size for variable in self.variables)

    @property
    def state(self) -> int:
        """Number of elements that are not trained."""
        return sum(variable.size for variable in self.state_variables)
