"""The asynchronous model predicts cycles of workers around a parameter server, all subsets at once.

The model is a closed queueing network (Baskett, Chandy, Muntz and Palacios, 1975). Each worker is a
customer of its own class: it computes, sends, has its update applied, receives, and begins again.
It queues at four stations of the server's host:

    link in     bytes sent / what the host's link takes in       processor sharing
    link out    bytes received / what it gives out               processor sharing
    processor   CPU seconds of exchanges and updates, and the    processor sharing
                whole compute of a co-located worker that trains on it
    lock        the serial update                                first come first served

The rest of the measured uncontended cycle is a delay, so that one remote worker alone is predicted
exactly as measured. On c cores a demand of D core-seconds queues for D/c and is delayed for
D (c-1)/c (Seidmann, Schweitzer and Shalev-Oren, 1987); the lock holds that part of an update.

Exact mean value analysis (Reiser and Lavenberg, 1980) runs over the lattice of subsets M. An
arriving customer finds the stations as they are on average without it:

    R_is(M) = D_is (1 + Q_s(M - i))
    cycle_i(M) = Z_i + sum_s R_is(M)
    Q_s(M) = sum_i R_is(M) / cycle_i(M).

Transfers that need little of the processor never queue there. Their T_i seconds a cycle slow what
does queue: R_is(M) is divided by 1 - sum_j T_j / cycle_j(M - i) over the other workers j (the
shadow processor of Sevcik, 1977). At the lock an update in progress is half done on average, so
half of its use by others is taken off the queue found there (Reiser, 1979). Without a lock the
result is exact in the mean of many cycles, however the demands are distributed.

Accuracy of the total rate: against event-driven simulation of 8 workers within 0.2 % where links
were busiest, and 5 % too low with a saturated lock (tests/planner/simulate.py); in 16 runs of real
workers 3.6 % off on average and 11 % at worst. Workers whose cycles hardly differ or vary can take
turns on the link for good; they were predicted up to 22 % too slow.
"""

from typing import NamedTuple

import numpy as np

from planner.arrays import Floats

STATIONS = ("link in", "link out", "processor", "lock")
LINK_IN, LINK_OUT, PROCESSOR, LOCK = range(4)
#: Transfers never steal a larger share of a processor from what queues for it or computes on it.
MAX_STOLEN_SHARE = 0.9


class SteadyStates(NamedTuple):
    """Steady state of every subset of n workers around each of h hosts; subset m has bit i for i.

    cycle_s: (h, 2**n, n), infinite where a worker is not in the subset.
    queue: (h, 2**n, stations), mean number of workers waiting at or using a station.
    """

    cycle_s: Floats
    queue: Floats


def split_cycle(cycle_s: Floats, demand_s: Floats) -> tuple[Floats, Floats]:
    """Demands (..., n, stations) and delays (..., n) that add up to the measured cycle (..., n).

    Demands that overlap in time, such as a processor that decrypts while the link still delivers,
    can exceed the cycle together: they are then scaled to fit it.
    """
    total_s = demand_s.sum(axis=-1)
    fits = np.divide(cycle_s, total_s, out=np.ones_like(total_s), where=total_s > cycle_s)
    return demand_s * fits[..., None], cycle_s - total_s * fits


def solve(demand_s: Floats, delay_s: Floats, unqueued_s: Floats | None = None) -> SteadyStates:
    """Mean value analysis of every subset of workers around every host.

    demand_s: (h, n, stations).
    delay_s: (h, n), infinite for a worker that cannot reach the host.
    unqueued_s: (h, n), processor seconds of a cycle that never queue, T_i; none if left out.
    """
    hosts, workers, stations = demand_s.shape
    subsets = np.arange(1 << workers)
    sizes = np.array([subset.bit_count() for subset in range(1 << workers)])
    cycle_s = np.full((1 << workers, workers, hosts), np.inf)
    queue = np.zeros((1 << workers, stations, hosts))
    used, stolen = np.zeros((2, 1 << workers, hosts))
    demand = np.ascontiguousarray(demand_s.transpose(1, 2, 0))
    delay = np.ascontiguousarray(delay_s.T)
    unqueued = np.zeros_like(delay) if unqueued_s is None else np.ascontiguousarray(unqueued_s.T)
    for size in range(1, workers + 1):
        level = subsets[sizes == size]
        for worker in range(workers):
            inside = level[level >> worker & 1 == 1]
            others = inside ^ (1 << worker)
            ahead = queue[others]
            ahead[:, LOCK] -= used[others] / 2
            response = demand[worker] * (1 + ahead)
            response[:, PROCESSOR] /= 1 - np.minimum(stolen[others], MAX_STOLEN_SHARE)
            cycle = delay[worker] + response.sum(axis=1)
            cycle_s[inside, worker] = cycle
            queue[inside] += response / cycle[:, None]
            used[inside] += demand[worker, LOCK] / cycle
            stolen[inside] += unqueued[worker] / cycle
    return SteadyStates(cycle_s.transpose(2, 0, 1), queue.transpose(2, 0, 1))
