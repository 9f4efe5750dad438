"""A model of 10 MB of parameters, of which weights and gradients are there when it is built."""

from types import SimpleNamespace
from typing import Any

import pytest

from backends.frameworks.optimizer import OWN, SGD
from backends.profiling.nothing_fits import require_room
from profilers.records.steps import ModelSize

MB = 10**6
SIZE = ModelSize(2_500_000, 10 * MB, 0)


def probe(used: int, available: int) -> Any:
    return SimpleNamespace(used_bytes=used * MB, available_bytes=float(available * MB))


def test_what_the_optimizer_keeps_must_fit_beside_weights_and_gradients() -> None:
    require_room(SIZE, SGD, probe(used=40, available=50))
    with pytest.raises(
        ValueError, match="optimizer need 50 MB of its memory, and may use 49 MB; train fewer parameters"
    ):
        require_room(SIZE, SGD, probe(used=40, available=49))


def test_what_a_job_s_own_optimizer_keeps_is_there_already() -> None:
    require_room(SIZE, OWN, probe(used=40, available=40))


def test_weights_that_are_too_large_alone_are_told_as_such() -> None:
    with pytest.raises(ValueError, match="its weights alone take 10 MB: take a smaller model$"):
        require_room(SIZE, SGD, probe(used=30, available=9))
