"""A job may carry a state from batch to batch, such as that of a recurrent network."""

import numbers
from typing import Any, Callable, Dict, List, Optional, Tuple

from backends.jobs.failure import refusal
from backends.jobs.user_job import type_in_words

#: Shapes of the tensors of a state, in their order.
Shapes = Callable[[Any], List[Tuple[int, ...]]]


class CarriedState:
    """What each part of a batch hands over to the same part of the next batch.

    A part begins with the initial state where it has none of these shapes, as when the size of
    batches has changed.

    initial: of a batch; None for a job without a state.
    """

    def __init__(self, initial: Optional[Callable[[Any], Any]], shapes: Shapes) -> None:
        self._initial = initial
        self._shapes = shapes
        self._states: Dict[int, Any] = {}
        self._part = 0
        self._after: Optional[Any] = None

    def begin(self, adds: bool = False) -> None:
        """The next batch begins, or with ``adds`` the next part of it.

        What is computed again before that, begins with the same state again.
        """
        if self._after is not None:
            self._states[self._part], self._after = self._after, None
        if not adds:
            self._states = {part: state for part, state in self._states.items() if part <= self._part}
        self._part = self._part + 1 if adds else 0

    def before(self, batch: Any) -> Any:
        """The state that this part of a batch begins with; None for a job without a state."""
        if self._initial is None:
            return None
        initial = self._initial(batch)
        carried = self._states.get(self._part, initial)
        return carried if self._shapes(carried) == self._shapes(initial) else initial

    def after(self, state: Any) -> None:
        """The state that this part of a batch ends with."""
        self._after = state

    def require(self, found: Any, batch: Any) -> None:
        """Raises JobFailure for a state that could not be carried on from a first batch.

        found: what forward has returned.
        """
        if self._initial is None:
            return
        if not isinstance(found, (tuple, list)) or len(found) != 3:
            raise refusal("its forward returns %s; it must return outputs, targets and state" % type_in_words(found))
        wanted, returned = self._shapes(self._initial(batch)), self._shapes(found[2])
        if wanted != returned:
            raise refusal(
                "its state has %s for a batch, and its forward returns a state with %s; give both alike"
                % (_text(wanted), _text(returned))
            )


def _text(shapes: List[Tuple[int, ...]]) -> str:
    return "tensors of %s" % ", ".join(map(str, shapes)) if shapes else "no tensor"


def require_plain(value: Any) -> None:
    """A part of a state that is no tensor is a number, a text or None. Raises JobFailure.

    Tensors in other objects would keep how they were computed.
    """
    if value is not None and not isinstance(value, (numbers.Number, str)):
        raise refusal("its state holds %s; give tensors, also in tuples, lists and dictionaries" % type_in_words(value))
