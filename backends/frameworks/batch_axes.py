"""The axes of a batch are found by the shapes of batches of different sizes, not assumed."""

from typing import List, NamedTuple, Optional, Sequence, Tuple

Shape = Tuple[int, ...]
#: Samples of the batches that are compared. A graph is made with the first; torch takes a length
#: of 1 for a constant.
COUNTS = (2, 3, 1)


class TensorLike(NamedTuple):
    """A tensor that a model takes or gives, as an example and as a rule.

    shape: with None for a length that follows the batch. example: the shape for the smallest batch.
    """

    name: str
    dtype: str
    shape: Tuple[Optional[int], ...]
    example: Shape


def growing_axes(shapes: Sequence[Shape]) -> List[int]:
    """The axes whose lengths differ. Raises ValueError where their number does."""
    if len(set(map(len, shapes))) > 1:
        raise ValueError("a tensor has more axes in one batch than in another: %s" % " and ".join(map(str, shapes)))
    return [axis for axis, lengths in enumerate(zip(*shapes)) if len(set(lengths)) > 1]


def tensor_like(name: str, dtype: str, shapes: Sequence[Shape]) -> TensorLike:
    """What batches of different sizes, the smallest last, tell of a tensor."""
    growing = growing_axes(shapes)
    rule = tuple(None if axis in growing else length for axis, length in enumerate(shapes[-1]))
    return TensorLike(name, dtype, rule, tuple(shapes[-1]))
