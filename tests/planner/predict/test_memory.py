"""Memory by batch size: 100 MB for any batch, and 2 MB for each sample, unless told."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from backends.strategies.engine import Engine
from backends.strategies.strategy import PARAMETER_SERVER, Strategy
from planner.predict.memory import (
    ACCELERATOR,
    HOST,
    MARGIN,
    SHARED,
    Further,
    MemoryLine,
    ServerHeadroom,
    StepHeadroom,
    fit,
)
from profilers.records.steps import BatchMemory, StepMemory
from tests.planner import profiles

MB = 10**6


def memory(*sizes: int, gpu: bool = False, **changes: object) -> StepMemory:
    made = StepMemory(tuple(BatchMemory(n, (100 + 2 * n) * MB, (50 + 4 * n) * MB if gpu else None) for n in sizes))
    return made._replace(**changes)


def headroom(found: StepMemory | None, available: float = 1000 * MB) -> StepHeadroom:
    return StepHeadroom(profiles.step(memory=found), available)


def test_one_size_has_no_slope() -> None:
    assert fit([(4, 108.0)]) is fit([]) is None


@given(some.dictionaries(some.integers(1, 512), some.floats(0, 1e12), min_size=2, max_size=6))
def test_no_measured_peak_lies_above_the_line_and_more_samples_take_no_less(points: dict[int, float]) -> None:
    line = fit(sorted(points.items()))
    assert line is not None and line.sample_bytes >= 0
    assert all(line.at(batch) >= used * (1 - 1e-9) - 1e-3 for batch, used in points.items())


@given(some.integers(0, 10**12), some.integers(1, 10**9), some.integers(0, 10_000))
def test_the_largest_batch_is_the_last_that_the_limit_holds(base: int, each: int, batch: int) -> None:
    line = MemoryLine(base, each)
    assert line.largest(line.at(batch)) == batch
    assert line.largest(line.at(batch) + each / 2) == batch == line.largest(line.at(batch + 1) - each / 4)


def test_where_nothing_grows_any_batch_fits_or_none() -> None:
    assert MemoryLine(5.0, 0.0).largest(5.0) == math.inf
    assert MemoryLine(5.0, 0.0).largest(4.0) == 0


def test_the_scarcer_of_both_memories_counts() -> None:
    found = headroom(memory(4, 8, gpu=True, accelerator_available_bytes=100 * MB))
    assert [each.name for each in found.memories] == [HOST, ACCELERATOR]
    assert found.largest() == (90 - 50) / 4


def test_an_integrated_gpu_takes_its_memory_from_the_processors() -> None:
    found = headroom(memory(4, 8, gpu=True, is_shared=True, accelerator_available_bytes=10**12), 200 * MB)
    assert [each.name for each in found.memories] == [SHARED]
    assert found.largest() == (180 - 150) / 6
    assert headroom(memory(4, 8, is_shared=True)).memories == []  # the GPU's part is not known


def test_a_size_that_did_not_fit_is_a_bound_whatever_the_line_says() -> None:
    assert headroom(memory(4, 8, too_large=16)).largest() == 15
    assert headroom(memory(4, too_large=8)).largest() == 7


def test_a_server_has_what_a_step_leaves_on_its_host() -> None:
    known = profiles.step(memory=memory(4, 8), parameter_bytes=10 * MB, state_bytes=MB, batch=8)
    devices = {"known": profiles.device(known), "unknown": profiles.device(known._replace(memory=None))}
    found = ServerHeadroom.among(
        profiles.profile(devices), {"known": known, "unknown": known._replace(memory=None)}, PARAMETER_SERVER
    )
    left = found.left_bytes(np.array([0, 0, 1]), np.array([8, 20, 8]))
    assert left == pytest.approx([(1 - MARGIN) * 2**32 - 116 * MB, (1 - MARGIN) * 2**32 - 140 * MB, math.inf])
    assert found.needed_bytes(np.array([1, 3])) == pytest.approx([53 * MB, 75 * MB])
    adding_up = ServerHeadroom.among(
        profiles.profile(devices), {"known": known}, PARAMETER_SERVER.with_part("compressor", "ef21")
    )
    assert adding_up.needed_bytes(np.array([1])) == pytest.approx([73 * MB])


@pytest.mark.parametrize("unknown", [None, memory(4), StepMemory((BatchMemory(4, None), BatchMemory(8, None)))])
def test_what_is_not_known_forbids_nothing(unknown: StepMemory | None) -> None:
    assert headroom(unknown).largest() == math.inf


#: Of a model of 10 MB, measured with SGD, whose momentum is an array of 10 MB.
ON_CPU = profiles.step(parameter_bytes=10 * MB, accelerator="cpu")
ON_GPU = profiles.changed(ON_CPU, accelerator="cuda")
OWN, TORCH = Engine(), Engine.from_text("torch")


@pytest.mark.parametrize(
    ("optimizer", "on_cpu", "on_gpu"),
    [
        ("sgd", (0, 0), (0, 0)),
        ("adam", (10, 0), (0, 10)),  # its second moment
        ("adamw", (10, 0), (0, 10)),
        ("lars", (0, 0), (10, 0)),  # which is updated on the processor
    ],
)
def test_a_device_alone_keeps_what_its_optimizer_keeps_more_than_sgd_where_it_computes(
    optimizer: str, on_cpu: tuple[int, int], on_gpu: tuple[int, int]
) -> None:
    found = [tuple(each / MB for each in Further.alone(step, optimizer)) for step in (ON_CPU, ON_GPU)]
    assert found == [on_cpu, on_gpu]


@pytest.mark.parametrize(
    ("strategy", "engine", "on_cpu", "on_gpu"),
    [
        ("parameter-server:optimizer=adam", OWN, (0, 0), (0, 0)),  # the server keeps it
        ("allreduce", OWN, (0, 0), (10, 0)),  # peers update on their processor
        ("allreduce:optimizer=adam", OWN, (10, 0), (20, 0)),
        ("allreduce", TORCH, (10, 0), (0, 10)),  # the buckets of DDP are a copy of the gradient
        ("allreduce:optimizer=adam", TORCH, (20, 0), (0, 20)),
        ("allreduce", Engine.from_text("torch:hook=powersgd"), (20, 0), (0, 20)),  # what it holds back
        ("diloco", OWN, (20, 0), (20, 0)),  # the weights before a round, and outer momentum
        ("diloco:optimizer=adam", OWN, (30, 0), (20, 10)),
        ("async-diloco", OWN, (10, 0), (10, 0)),  # the server keeps the outer momentum
    ],
)
def test_a_member_keeps_what_its_updates_and_its_exchange_need(
    strategy: str, engine: Engine, on_cpu: tuple[int, int], on_gpu: tuple[int, int]
) -> None:
    members = (Further.of_member(step, Strategy.from_text(strategy), engine, 3) for step in (ON_CPU, ON_GPU))
    assert [tuple(each / MB for each in member) for member in members] == [on_cpu, on_gpu]


def test_what_a_jobs_own_optimizer_keeps_was_measured_and_what_others_keep_was_not() -> None:
    own = profiles.changed(ON_GPU, own_optimizer=True)
    assert (
        Further.alone(own, "own") == Further.of_member(own, Strategy.from_text("sgp:optimizer=own"), OWN, 3) == (0, 0)
    )
    assert Further.alone(own, "sgd") == (0, 10 * MB)


def test_the_largest_batch_leaves_room_for_what_a_run_keeps() -> None:
    step = profiles.step(memory=memory(4, 8, gpu=True, accelerator_available_bytes=100 * MB))
    for further, largest in ((Further(), 10), (Further(accelerator=20 * MB), 5), (Further(host=800 * MB - 8 * MB), 4)):
        assert StepHeadroom(step, 1000 * MB, further).largest() == largest
    shared = profiles.step(memory=memory(4, 8, gpu=True, is_shared=True))
    assert StepHeadroom(shared, 200 * MB, Further(6 * MB, 12 * MB)).largest() == 5 - 3


@pytest.mark.parametrize(
    ("accelerator", "host", "gpu"),
    [
        ("cpu", 37.6 - 30, 0),  # weights, gradients and momentum were measured
        ("cuda", 10 - 20, 37.6 - 30),  # a replica has weights and gradients on the host as well
    ],
)
def test_a_member_that_holds_a_share_lacks_what_was_measured_of_a_whole_replica(
    accelerator: str, host: float, gpu: float
) -> None:
    size = {"parameters": 2_500_000, "parameter_bytes": 10 * MB, "blocks": (1_000_000, 1_000_000, 300_000)}
    step = profiles.changed(profiles.step(accelerator=accelerator), **size)
    adamw, sharded = Strategy.from_text("allreduce:optimizer=adamw"), Engine.from_text("torch:shard=full")
    found = Further.of_member(step, adamw, sharded, members=2)
    assert found == (pytest.approx(host * MB), pytest.approx(gpu * MB))


def test_a_size_that_ran_out_of_memory_may_fit_a_member_that_holds_a_share() -> None:
    step = profiles.step(memory=memory(4, 8, too_large=16))
    assert StepHeadroom(step, 1000 * MB).largest() == 15
    assert StepHeadroom(step, 1000 * MB, Further(host=-50.0 * MB)).largest() == (900 - 50) / 2
