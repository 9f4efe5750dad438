"""Groups of consecutive ranks are led by their first rank (hierarchical Crossover-SGD, 3.3).

Gradients are summed at the leader, leaders exchange the sums, and weights return to the group.
Ranks that share a fast link should be consecutive. There are as many groups as requested, or n
where there are fewer workers. A join or leave moves the borders.
"""

from typing import List, Tuple


def split(n: int, count: int) -> List[range]:
    """The groups of n ranks, whose sizes differ by at most 1; none is empty."""
    count = min(count, n)
    return [range(n * i // count, n * (i + 1) // count) for i in range(count)]


def leaders(n: int, count: int) -> Tuple[int, ...]:
    """The first rank of each group."""
    return tuple(group[0] for group in split(n, count))


def group_of(rank: int, n: int, count: int) -> range:
    """The group that ``rank`` is in; 0 <= rank < n."""
    return next(group for group in split(n, count) if rank in group)
