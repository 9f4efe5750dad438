"""Idle watts and a share of the dynamic ones, on measurements made up by that form and off it."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import share_of_watts
from benchmarks.share_of_watts import BUSY, SHARE, Runs
from power_models.table import read_csv

SHARES = np.array([0.2, 0.4, 0.6, 0.8, 0.3, 0.9])
GROUPS = np.array([0, 0, 1, 1, 2, 2])


def test_runs_of_the_form_are_predicted_exactly_and_always_busy_is_not() -> None:
    watts = 40.0 + 100.0 * SHARES
    for busy_w in (None, np.full(6, 140.0)):
        found = share_of_watts.errors(Runs(GROUPS, SHARES, watts, busy_w))
        assert found[SHARE] == pytest.approx(0.0, abs=1e-9)
        assert abs(found[BUSY]).max() > 0.1


def test_runs_of_a_node_count_once_and_are_predicted_by_others(tmp_path: Path) -> None:
    lines = ["kind,benchmark,run,mean_node_watts"]
    for kind, share in (("ac", 1.0), ("dc", 0.9)):
        lines += [
            f"{kind},{benchmark},{run},{watts * share}"
            for benchmark, run, watts in (
                ("bert", "result_1_0", 1000), ("bert", "result_1_raw_0", 1000), ("bert", "result_2_0", 1100),
                ("ssd", "result_3_0", 900),
            )
        ]  # fmt: skip
    lines.append("ac,ssd,result_3_1,950")  # not metered behind the supplies
    (tmp_path / "runs.csv").write_text("\n".join(lines) + "\n")
    runs = share_of_watts.node(read_csv(tmp_path / "runs.csv"))
    assert list(runs.wall_w) == [1000.0, 1100.0, 900.0]
    assert share_of_watts.of_other_results(runs) == pytest.approx([0.1, 1000 / 1100 - 1])
    assert share_of_watts.of_other_benchmarks(runs) == pytest.approx([-0.1, 900 / 1100 - 1, 1050 / 900 - 1])
    assert share_of_watts.behind_supplies(runs) == pytest.approx(0.0, abs=1e-9)
