"""The devices of the short part of the suite."""

import os
from collections.abc import Iterator

import pytest

from tests.benchmarks.lab.conftest import lab_machine as lab_machine
from tests.chaos import devices
from tests.chaos.devices import Devices


@pytest.fixture(scope="module")
def fleet(lab_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devices]:
    with devices.lab(f"c{os.getpid()}", tmp_path_factory.mktemp("lab")) as made:
        yield made
