"""The planner's own form of watts, idle and a share of the dynamic ones, on real machines' records.

In a lab that form is scored against an emulation with the same ends. Here are data of others:
training on a V100 and a P100 (Zeus), GPU programs on a V100 (DCGM counters), and an 8-GPU node at
its meters (MLPerf Training v4.0). `share_of_watts.py` reads and scores them.

1. GPUs. "idle + share": watts = idle + (busy - idle) share. Zeus: busy is the quickest batch size
   of the workload at this limit, the share is its seconds over those of the held-out batch size,
   and idle is fitted to all other workloads. Programs: idle and busy are fitted to all other
   programs at this clock, the share is the activity of the multiprocessors. "always busy" takes
   no share: the watts of the quickest batch size, or the mean of the other programs.
2. The node, which was always busy: watts of a run from runs of the same benchmark in other results,
   or from those of other benchmarks; and watts at the wall from those behind the supplies, by the
   ratio in other benchmarks.

None of these devices waited for a network. Errors are predicted / measured - 1.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import share_of_watts
from power_data import files
from reporting import Spread, parser, show

from planner.arrays import Floats
from power_models.table import CsvFile

ZEUS, PROGRAMS, NODE = ("zeus_v100.csv", "zeus_p100.csv"), "counters_v100.csv", "mlperf_h100_1node.csv"


def main() -> None:
    options = parser(__doc__).parse_args()
    rows = [row for name, file in files(*ZEUS).items() for row in _batch_sizes(name, file)]
    rows += [row for name, file in files(PROGRAMS).items() for row in _programs(name, file)]
    if rows:
        show("1. Idle watts and a share of the dynamic ones, on GPUs", rows, options.json)
    for name, file in files(NODE, folder="cluster").items():
        show("2. Watts of a busy node", _node(name, file), options.json)


def _batch_sizes(name: str, file: CsvFile) -> Iterator[dict[str, Any]]:
    top_w = file.table().numbers("power_limit").max()
    for which, least_w in (("greatest limit", top_w), ("every limit", 0.0)):
        found = share_of_watts.errors(share_of_watts.batch_sizes(file, least_w))
        for form, each in found.items():
            yield _row(name, form, "other workloads, quickest batch", f"batch sizes, {which}", each)


def _programs(name: str, file: CsvFile) -> Iterator[dict[str, Any]]:
    by_clock = [share_of_watts.errors(runs) for runs in share_of_watts.programs(file)]
    for form in (share_of_watts.SHARE, share_of_watts.BUSY):
        errors = np.concatenate([each[form] for each in by_clock])
        yield _row(name, form, "other programs at the clock", "program", errors)


def _node(name: str, file: CsvFile) -> list[dict[str, Any]]:
    runs = share_of_watts.node(file)
    by_benchmark = "other benchmarks"
    return [
        _row(name, "same watts", "same benchmark, others' results", "result", share_of_watts.of_other_results(runs)),
        _row(name, "same watts", by_benchmark, "benchmark", share_of_watts.of_other_benchmarks(runs)),
        _row(name, "wall / behind supplies", by_benchmark, "benchmark", share_of_watts.behind_supplies(runs)),
    ]


def _row(data: str, form: str, calibrated: str, held_out: str, errors: Floats) -> dict[str, Any]:
    per_cent = 100 * errors
    return {
        "data": data, "form": form, "calibrated on": calibrated, "held out": held_out, "runs": len(per_cent),
        "mean %": float(abs(per_cent).mean()), "worst %": float(abs(per_cent).max()),
        "median (range) %": Spread.of(per_cent.tolist()),
    }  # fmt: skip


if __name__ == "__main__":
    main()
