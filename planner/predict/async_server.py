"""The asynchronous model predicts cycles of workers around a parameter server, all subsets at once.

The model is a closed queueing network (Baskett, Chandy, Muntz and Palacios, 1975) with one
customer a class. A worker is a customer: it computes, sends, has its update applied, receives,
and begins again. It queues at four stations of the server's host:

    link in     bytes sent / what the host's link takes in       processor sharing
    link out    bytes received / what it gives out               processor sharing
    processor   CPU seconds of exchanges and updates, and the    processor sharing
                whole compute of a co-located worker that trains on it
    lock        the serial update                                first come first served,
                                                                 always as long

Everything else of its cycle delays it without a queue. The delay is what is left of the measured
uncontended cycle, so that one remote worker alone is predicted exactly as measured. On c cores a
demand of D core-seconds queues for D/c and is delayed for D (c-1)/c (Seidmann, Schweitzer and
Shalev-Oren, 1987); of an update that second part is held under the lock.

Exact mean value analysis (Reiser and Lavenberg, 1980) over the lattice of subsets M: an arriving
customer finds the stations as they are on average without it,

    R_is(M) = D_is (1 + Q_s(M - i))
    cycle_i(M) = Z_i + sum_s R_is(M)
    Q_s(M) = sum_i R_is(M) / cycle_i(M).

Transfers that need little of the processor have it whenever they want it. They are no customers
there: what they take, T_i a cycle, makes all that queue for it slower, R_is(M) = D_is (1 + Q_s(M -
i)) / (1 - sum_j T_j / cycle_j(M - i)) over the other workers j (the shadow processor of Sevcik,
1977).

At the lock an update in progress is half done on average, so that half of what others use it is
taken off the queue found there (Reiser, 1979). The other three stations and the delay do not care
how their demands are distributed, and without a lock the result is exact: in the mean of so many
cycles that workers have met in all the ways they can. Against event-driven simulation of 8 workers
with constant demands (tests/planner/simulate.py) the total rate was within 0.2 % where links were
busiest, 1 to 2 % with the lock used for 40 % of the time, and 5 % too low with it saturated: 18 %
without the correction. A few cycles show little but how the workers happened to begin.

That TCP shares a link equally was measured at a shaped port, by scripts that were not kept: a flow
that joined another got 0.33 to 0.55 of it, median 0.47. In 16 such runs of 2 to 8 real workers,
their gradients varying by 3 to 30 %, the predicted total rate was 3.6 % off on average and 11 % at
worst. The known limit: workers whose cycles differ by less than a tenth of a transfer and whose
gradients hardly vary can take turns on the link for good, because who comes first keeps a little
more than half of it. They were predicted up to 22 % too slow.
"""

from typing import NamedTuple

import numpy as np

from planner.arrays import Floats

STATIONS = ("link in", "link out", "processor", "lock")
LINK_IN, LINK_OUT, PROCESSOR, LOCK = range(4)
#: Transfers never steal a larger share of a processor from what queues for it or computes on it.
MAX_STOLEN_SHARE = 0.9


class Lattice(NamedTuple):
    """Steady state of every subset of n workers around each of h hosts.

    Subset m has bit i for worker i.

    cycle_s: (h, 2**n, n), infinite where a worker is not in the subset; queue: (h, 2**n, stations),
        mean number of workers waiting at or using a station.
    """

    cycle_s: Floats
    queue: Floats


def split_cycle(cycle_s: Floats, demand_s: Floats) -> tuple[Floats, Floats]:
    """Demands and delay that add up to the measured cycle: (demand_s, delay_s).

    cycle_s: (..., n); demand_s: (..., n, stations). Demands that overlap in time, such as a
        processor that decrypts while the link still delivers, can exceed the cycle together: they
        are then scaled to fit it.
    """
    total_s = demand_s.sum(axis=-1)
    fits = np.divide(cycle_s, total_s, out=np.ones_like(total_s), where=total_s > cycle_s)
    return demand_s * fits[..., None], cycle_s - total_s * fits


def solve(demand_s: Floats, delay_s: Floats, unqueued_s: Floats | None = None) -> Lattice:
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
    used = np.zeros((1 << workers, hosts))
    stolen = np.zeros((1 << workers, hosts))
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
    return Lattice(cycle_s.transpose(2, 0, 1), queue.transpose(2, 0, 1))
