"""A derangement is a random topology without fixed points (Crossover-SGD, Alg. 2, mended).

Alg. 2 draws rank by rank from those that are left. The last rank may find only itself left, and
where it does not, some permutations come up more often than others. Here whole permutations are
drawn until one leaves no rank in its place: e of them on average, and all without fixed points
are equally likely.
"""

from typing import List, Sequence, Tuple

import numpy as np

from backends.frameworks.base import Variable


def derangement(n: int, seed: int, step: int, segment: int = 0) -> Tuple[int, ...]:
    """To whom each of n ranks sends a segment in a step: a random permutation without fixed points.

    It is the same wherever it is drawn: the numbers of RandomState are frozen (NEP 19). Raises
    ValueError for fewer than 2 ranks, and where seed, step or segment is not in 0..2**32 - 1.
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
    """Start and end, in the flat buffer, of ``count`` segments of whole layers, of about equal
    size.

    A border is where a layer ends, as near as can be to where equal parts would have it. Where
    there are fewer layers each is a segment.
    """
    ends = [variable.start + variable.size for variable in variables]
    count = min(count, len(ends))
    borders, first = [0], 0
    for i in range(1, count):
        wanted = ends[-1] * i / count
        gaps = [abs(end - wanted) for end in ends[first : len(ends) - count + i]]
        first += gaps.index(min(gaps)) + 1
        borders.append(ends[first - 1])
    return list(zip(borders, borders[1:] + ends[-1:]))
