"""Watts of training runs under power limits, on the Zeus traces of a V100 and a P100.

1. A (dataset, network, batch size) that was never run, whatever its optimizer.
2. A power limit that was never set.
"""

from typing import Any

from power_data import files, report, validated
from reporting import parser

POWER, LIMIT, BATCH = "average_power", "power_limit", "batch_size"
WORKLOAD = ("dataset", "network")


def main() -> None:
    options = parser(__doc__).parse_args()
    rows: list[dict[str, Any]] = []
    for name, file in files("zeus_v100.csv", "zeus_p100.csv").items():
        rows += validated(name, file, POWER, (*WORKLOAD, BATCH), "<= 3 %")
        rows += validated(name, file, POWER, (LIMIT,), "<= 4 %", each_value=True)
    report("Zeus traces, held out", rows, options.json)


if __name__ == "__main__":
    main()
