"""A derangement is a random topology without fixed points (corrected Crossover-SGD, Alg. 2).

Alg. 2 draws rank by rank from the remaining ones. The last rank may have only itself left;
otherwise some permutations are more frequent than others. Here whole permutations are drawn until
one has no fixed point: e draws on average, and all derangements are equally likely.
"""

from typing import List, Sequence, Tuple

import numpy as np

from backends.frameworks.base import Variable


def derangement(n: int, seed: int, step: int, segment: int = 0) -> Tuple[int, ...]:
    """The receiver of each of n ranks in a step: a random permutation without fixed points.

    It is the same on every machine: the numbers of RandomState are frozen (NEP 19).
    Raises ValueError for fewer than 2 ranks, and where seed, step or segment is not in 0..2**32 -
    1.
    """
    if n < 2:
        raise ValueError("%d ranks have no permutation without fixed points" % n)
    source = np.random.RandomState([seed, step, segment])
    places = np.arange(n)
    while True:
        drawn = source.permutation(n)
        if not np.any(drawn == places):
            return tuple(drawn.tolist())


def segments(variables: Sequence[Variable], count: int) -> List[Tuple[int, int]]:
    """Start and end, in the flat buffer, of ``count`` segments of about equal size.

    Segments consist of whole layers: each ends with the layer nearest to an equal division. Where
    there are fewer layers, each layer is a segment.
    """
    ends = [variable.start + variable.size for variable in variables]
    count = min(count, len(ends))
    borders, first = [0], 0
    for i in range(1, count):
        ideal_end = ends[-1] * i / count
        gaps = [abs(end - ideal_end) for end in ends[first : len(ends) - count + i]]
        first += gaps.index(min(gaps)) + 1
        borders.append(ends[first - 1])
    return list(zip(borders, borders[1:] + ends[-1:]))
