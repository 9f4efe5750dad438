"""What a replica looks like from outside: all members of a run, and its checkpoints, must agree on it."""

from typing import Any, List, NamedTuple, Tuple

from backends.frameworks.base import Replica, Variable


class Layout(NamedTuple):
    """The named arrays that lie one after the other in a flat buffer of weights, and in one of state."""

    variables: Tuple[Variable, ...]
    state_variables: Tuple[Variable, ...]

    @property
    def parameters(self) -> int:
        """Trained elements."""
        return sum(variable.size for variable in self.variables)

    @property
    def state(self) -> int:
        """Elements that are not trained."""
        return sum(variable.size for variable in self.state_variables)

    def encode(self) -> List[Any]:
        """Plain JSON values."""
        return [[list(variable) for variable in part] for part in self]

    @classmethod
    def decode(cls, value: Any) -> "Layout":
        """From ``encode``'s values. Raises ValueError where they are not of that form."""
        try:
            parts = [tuple(Variable(n, tuple(s), int(a), int(b)) for n, s, a, b in part) for part in value]
            return cls(*parts)
        except TypeError as error:
            raise ValueError("not the layout of a model: %s" % error) from error


def layout_of(replica: Replica) -> Layout:
    """The layout of a replica."""
    return Layout(replica.variables, replica.state_variables)
