"""The short part of the chaos suite: a few seeds, each with another fault. Needs root."""

from pathlib import Path

import pytest

from tests.chaos import oracle
from tests.chaos.devices import Devices
from tests.chaos.run import carry_out
from tests.chaos.scenario import scenario

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("chaos")]
SEEDS = (3, 34, 38, 58)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_with_a_fault_is_as_the_oracle_says(seed: int, tmp_path: Path, fleet: Devices) -> None:
    case = scenario(seed)
    assert oracle.violations(case, carry_out(case, tmp_path, fleet)) == [], case.text
