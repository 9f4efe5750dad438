"""Watts of training runs under power limits, on the Zeus traces of a V100 and a P100.

1. A (dataset, network, batch size) that was never run, whatever its optimizer, and the same divided
   into other folds.
2. A power limit that was never set.
"""

from typing import Any

from power_data import files, measured, report, row, validated
from reporting import parser

from power_models.base import Target
from power_models.columns import choose
from power_models.evaluate import cross_validate, folds
from power_models.table import CsvFile

POWER, LIMIT, BATCH = "average_power", "power_limit", "batch_size"
WORKLOAD = ("dataset", "network")


def main() -> None:
    options = parser(__doc__).parse_args()
    rows: list[dict[str, Any]] = []
    for name, file in files("zeus_v100.csv", "zeus_p100.csv").items():
        rows += validated(name, file, POWER, (*WORKLOAD, BATCH), "<= 3 %")
        rows += _divided_anew(name, file)
        rows += validated(name, file, POWER, (LIMIT,), "<= 4 %", each_value=True)
    report("Zeus traces, held out", rows, options.json)


def _divided_anew(name: str, file: CsvFile) -> list[dict[str, Any]]:
    """The first one, for other divisions of the groups into folds."""
    table = file.table()
    groups = table.keys((*WORKLOAD, BATCH))
    used, target = (
        table.only(choose(table, POWER, groups, (*WORKLOAD, BATCH)).features),
        Target(POWER, file.positive(POWER)),
    )
    made = []
    for seed in (1, 2, 3):
        held = folds(groups, seed=seed)
        scores = cross_validate(used, target, held, ("saturation",)).held_out["saturation"].scores()
        split = f"the same, division {seed} of {len(held)} folds"
        made.append(row(name, POWER, split, "saturation", "reported") | measured(scores))
    return made


if __name__ == "__main__":
    main()
