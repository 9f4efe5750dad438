"""A model of 10 MB of parameters, of which weights and gradients are there when it is built."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from backends.frameworks.optimizer import OWN, SGD
from backends.jobs.failure import JobFailure
from backends.profiling.nothing_fits import require_room, with_remedy
from backends.profiling.smallest_change import SMALLER
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


def told(step: Any, is_checkpointed: bool = False) -> str:
    """What the error says where a checkpointed step may be tried, which fits unless it fails."""
    tried = Mock(measure=lambda size, work: work())
    return str(with_remedy(MemoryError("no batch fits"), Mock(), is_checkpointed, lambda size: step, tried))


def test_checkpointing_is_advised_where_a_batch_fits_with_it() -> None:
    assert told(lambda: 0.1).startswith("no batch fits; profile it with --activation-checkpointing: a batch of")


def test_checkpointing_is_not_advised_where_it_is_on_already() -> None:
    assert told(lambda: 0.1, is_checkpointed=True) == f"no batch fits; {SMALLER}"


@pytest.mark.parametrize("error", [JobFailure("cannot compute Block again"), RuntimeError("other sizes")])
def test_a_trial_that_fails_for_another_reason_leaves_the_error_of_memory(error: Exception) -> None:
    assert told(Mock(side_effect=error)) == f"no batch fits; {SMALLER}"
