"""A layout lists the named arrays of a model; members and checkpoints of a run must agree on it."""

from typing import NamedTuple, Tuple

from backends.frameworks.base import Replica, Variable


class Layout(NamedTuple):
    """The arrays that lie one after the other in flat buffers."""

    variables: Tuple[Variable, ...]  # in the buffer of weights
    state_variables: Tuple[Variable, ...]  # in the buffer of state

    @property
    def parameters(self) -> int:
        """Number of trained elements."""
        return sum(variable.size for variable in self.variables)

    @property
    def state(self) -> int:
        """Number of elements that are not trained."""
        return sum(variable.size for variable in self.state_variables)


def layout_of(replica: Replica) -> Layout:
    """The layout of a replica."""
    return Layout(replica.variables, replica.state_variables)
