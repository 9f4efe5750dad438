"""Weights and gradients per second through the data plane are compared with iperf3's rate.

A worker pulls, then pushes, so that one direction is busy at a time: pulled and pushed bytes over
the time of both is what to hold against iperf3's payload in one direction. The gradient costs
nothing; the server's update is real. What a shaper's bucket may let through unshaped in each
message is not counted, which is unfair to small models.
"""

import itertools
import statistics

from lab.traffic_control import bucket_bytes
from namespaces import BYTES_PER_S_MBIT, Star
from reporting import Spread, parser, show
from runs import agents, measure, train

from planner.profile.link_probe import Outstanding
from profilers.records.links import LinkProfile

MODEL_BYTES = (240_000, 4_000_000, 25_000_000)
RATES_MBIT = (100.0, 1000.0)
RUN_S = 2.0
FEWEST = 4


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rounds", type=int, default=3, help="repeats of everything, interleaved")
    options = arguments.parse_args()
    rows = []
    with Star({"server": RATES_MBIT[0], "worker": RATES_MBIT[0]}) as star:
        for rate_mbit in RATES_MBIT:
            star.reshape(rate_mbit)
            rounds = [_round(star, rate_mbit) for _ in range(options.rounds)]
            rows += [
                {
                    "Mbit/s set": round(rate_mbit),
                    "iperf3 Mbit/s": Spread.of(each["iperf3"] * 8e-6 for each in rounds),
                    "model MB": size / 1e6,
                    "ratio to iperf3": Spread.of(each[size] / each["iperf3"] for each in rounds),
                }
                for size in MODEL_BYTES
            ]
    show("Data plane over iperf3", rows, options.json)


def _round(star: Star, rate_mbit: float) -> dict[str | int, float]:
    """Bytes/s of iperf3, the mean of both directions, and of training by bytes of the model."""
    with agents(star, ("server", "worker")) as reached:
        pairs = (("server", "worker"), ("worker", "server"))
        links = measure(star, reached, (), Outstanding(pairs, ()))
    found: dict[str | int, float] = {"iperf3": statistics.mean(_iperf3(link) for link in links)}
    for size in MODEL_BYTES:
        steps = max(FEWEST, round(RUN_S * found["iperf3"] / (2 * size)))
        measured = train(star, "server", {"worker": 0.0}, size // 4, steps)
        ends = measured.ends_s["worker"][1:]
        cycle_s = statistics.median(later - earlier for earlier, later in itertools.pairwise(ends))
        found[size] = 2 * (size - bucket_bytes(rate_mbit * BYTES_PER_S_MBIT)) / cycle_s
    return found


def _iperf3(link: object) -> float:
    assert isinstance(link, LinkProfile) and link.tool == "iperf3", "install iperf3: it is what this compares with"
    return statistics.median(link.bytes_per_s.values)


if __name__ == "__main__":
    main()
