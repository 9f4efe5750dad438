"""Watts are predicted from counters, for programs and for clocks that the models have not seen.

Data of others: 20 GPU programs at 10 clocks on a V100 (DCGM counters), 30 at 20 pairs of clocks on
a GTX 1080 Ti (profiler counters). Features are the defaults of `planner power fit`, so never the
run's time. A program, or a clock, is in one fold only. Every kind of model is shown, so that the
choice of the best hides nothing.
"""

from power_data import files, report, validated
from reporting import parser

V100, GTX = "counters_v100.csv", "clocks_1080ti.csv"
SPLITS = {
    V100: (
        ("average_power", ("benchmark",), "<= 13 %", False),
        ("average_power", ("core_frequency",), "<= 6 %", True),
    ),
    GTX: (
        ("power/W", ("appName",), "<= 15 %", False),
        ("power/W", ("coreF", "memF"), "<= 6 %", True),
        ("power/W", ("coreF",), "<= 6 %", True),
        ("power/W", ("memF",), "<= 6 %", True),
    ),
}  # fmt: skip


def main() -> None:
    options = parser(__doc__).parse_args()
    rows = [
        row
        for name, file in files(V100, GTX).items()
        for target, by, goal, each_value in SPLITS[name]
        for row in validated(name, file, target, by, goal, each_value)
    ]
    report("Watts from counters, held out", rows, options.json)


if __name__ == "__main__":
    main()
