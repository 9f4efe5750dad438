"""The file for users' scripts: how samples are dealt to processes of unlike batches."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.needs("torch")
torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, WeightedRandomSampler

from planner.launch import planner_batches
from planner.launch.planner_batches import ProportionalSampler, ProportionalStream, batch_sizes, loss_weight

BATCHES = st.lists(st.integers(1, 9), min_size=1, max_size=5)


def of_all_ranks(batches: list[int], ask: Callable[[], Any]) -> list[Any]:
    """What each rank of a plan answers."""
    found = []
    for rank in range(len(batches)):
        sizes = ",".join(map(str, batches))
        place = {"RANK": str(rank), "WORLD_SIZE": str(len(batches)), "PLANNER_BATCH_SIZES": sizes}
        with mock.patch.dict(os.environ, place):
            found.append(ask())
    return found


def epoch_of(sampler: Any, epoch: int) -> list[list[int]]:
    """The batches of an epoch, as a loader makes them."""
    sampler.set_epoch(epoch)
    return [batch.tolist() for batch in DataLoader(range(len(sampler.dataset)), sampler.batch_size, sampler=sampler)]


def union(ranks: list[list[list[int]]], step: int) -> list[int]:
    return [sample for rank in ranks for sample in rank[step]]


@given(BATCHES, st.integers(1, 200), st.integers(0, 3), st.integers(0, 9), st.booleans())
def test_steps_are_the_global_batches_that_one_process_would_draw(
    batches: list[int], samples: int, epoch: int, seed: int, shuffle: bool
) -> None:
    data = range(samples)
    ranks = of_all_ranks(batches, lambda: epoch_of(ProportionalSampler(data, 1, shuffle, seed), epoch))
    alone = DistributedSampler(data, 1, 0, shuffle, seed)  # type: ignore[arg-type]
    alone.set_epoch(epoch)
    order = list(alone)
    steps, whole = -(-samples // sum(batches)), sum(batches)
    assert {len(rank) for rank in ranks} == {steps}
    assert all(len(batch) == size for rank, size in zip(ranks, batches, strict=True) for batch in rank)
    dealt = [sample for step in range(steps) for sample in union(ranks, step)]
    assert dealt[:samples] == order
    assert dealt[samples:] == (order * whole)[: steps * whole - samples]  # the first fill up the last step


@given(BATCHES, st.integers(0, 200))
def test_the_last_step_can_be_left_out_and_then_no_sample_comes_twice(batches: list[int], more: int) -> None:
    samples = sum(batches) + more
    ranks = of_all_ranks(batches, lambda: epoch_of(ProportionalSampler(range(samples), 1, drop_last=True), 0))
    dealt = [sample for rank in ranks for batch in rank for sample in batch]
    assert len(dealt) == len(set(dealt)) == samples - samples % sum(batches)


def test_epochs_differ_and_each_is_the_same_again() -> None:
    sampler = ProportionalSampler(range(100), 7)
    first, second = epoch_of(sampler, 0), epoch_of(sampler, 1)
    assert first != second and epoch_of(sampler, 0) == first
    assert epoch_of(ProportionalSampler(range(100), 7, seed=1), 0) != first


@given(BATCHES)
def test_weighed_means_of_batches_are_the_mean_of_all_samples(batches: list[int]) -> None:
    losses = iter(range(sum(batches)))
    means = [sum(next(losses) for _ in range(size)) / size for size in batches]
    weights = of_all_ranks(batches, lambda: ProportionalSampler(range(9), 1).weight)
    assert weights == of_all_ranks(batches, loss_weight)
    mean = sum(weight * each for weight, each in zip(weights, means, strict=True)) / len(batches)
    assert mean == pytest.approx((sum(batches) - 1) / 2)


def test_without_a_plan_all_processes_have_the_scripts_own_batch() -> None:
    with mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "3", "PLANNER_BATCH_SIZES": ""}):
        assert (batch_sizes(32), loss_weight()) == ([32, 32, 32], 1)
    sampler = ProportionalSampler(range(10), 4, shuffle=False)
    assert (sampler.batch_size, sampler.weight) == (4, 1)
    assert epoch_of(sampler, 0) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]


@pytest.mark.parametrize("batches", ["5", "5,3,3", "5,", "5,0", "5,-3", "5,3.0", "5 3"])
def test_batches_that_do_not_fit_the_processes_are_refused(batches: str) -> None:
    problem = f"batches of {batches} samples do not fit 2 processes, .* unset PLANNER_BATCH_SIZES"
    plan = {"WORLD_SIZE": "2", "PLANNER_BATCH_SIZES": batches}
    with mock.patch.dict(os.environ, plan), pytest.raises(ValueError, match=problem):
        ProportionalSampler(range(10), 4)


def test_a_sampler_that_is_made_before_the_processes_know_each_other_deals_to_all() -> None:
    samplers = [ProportionalSampler(range(8), 2, shuffle=False) for _ in range(2)]
    ranks = [(sampler, {"RANK": str(rank), "WORLD_SIZE": "2"}) for rank, sampler in enumerate(samplers)]
    dealt = []
    for sampler, place in ranks:
        with mock.patch.dict(os.environ, place):
            dealt.append(epoch_of(sampler, 0))
    assert dealt == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]


def test_hosts_with_unlike_numbers_of_processes_are_refused_for_lightning() -> None:
    """Two on the first host, one on the second and the third."""
    place = {"RANK": "2", "WORLD_SIZE": "4", "NODE_RANK": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    with mock.patch.dict(os.environ, place), pytest.raises(ValueError, match="not all hosts have 1 of 4 processes"):
        planner_batches.lightning_nodes()
    with mock.patch.dict(os.environ, {**place, "LOCAL_WORLD_SIZE": "2"}):
        assert planner_batches.lightning_nodes() == {"num_nodes": 2, "devices": 2}


def test_data_that_make_no_step_are_refused() -> None:
    with pytest.raises(ValueError, match="3 samples make no step of 4"):
        ProportionalSampler(range(3), 4, drop_last=True)


@pytest.mark.parametrize("generator", [None, torch.Generator()])
def test_an_order_of_the_users_own_is_the_same_for_all_and_leaves_random_numbers_alone(generator: Any) -> None:
    def epochs() -> list[list[list[int]]]:
        torch.seed()  # no two processes agree
        order = WeightedRandomSampler([0.0, 1.0] * 20, 40, generator=generator)
        sampler, before = ProportionalSampler(range(40), 4, order=order), torch.get_rng_state()
        list(sampler)
        assert torch.equal(torch.get_rng_state(), before)
        return [epoch_of(sampler, epoch) for epoch in (0, 1)]

    wide, narrow = of_all_ranks([5, 3], epochs)
    (alone,) = of_all_ranks([8], epochs)
    for epoch in (0, 1):
        assert [union([wide[epoch], narrow[epoch]], step) for step in range(5)] == alone[epoch]
    assert all(sample % 2 for batch in alone[0] for sample in batch)
    assert alone[0] != alone[1]


class Counting(IterableDataset):  # type: ignore[misc]
    """A stream of numbers."""

    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.samples))


@given(BATCHES, st.integers(1, 100), st.booleans())
def test_a_stream_is_dealt_as_data_that_can_be_counted(batches: list[int], samples: int, drop_last: bool) -> None:
    samples += sum(batches)

    def batches_of_stream() -> list[list[int]]:
        stream = ProportionalStream(Counting(samples), 1, drop_last)
        loader = DataLoader(stream, stream.batch_size)
        found = [batch.tolist() for batch in loader]
        assert len(found) == len(loader)
        return found

    sampled = of_all_ranks(
        batches, lambda: epoch_of(ProportionalSampler(range(samples), 1, False, drop_last=drop_last), 0)
    )
    assert of_all_ranks(batches, batches_of_stream) == sampled


def test_a_short_stream_fills_its_only_step() -> None:
    ranks = of_all_ranks([5, 3], lambda: list(ProportionalStream(Counting(3), 1)))
    assert ranks == [[0, 1, 2, 0, 1], [2, 0, 1]]


def test_the_file_runs_where_users_scripts_do_and_needs_nothing_of_planner(tmp_path: Path) -> None:
    source = Path(sys.modules[ProportionalSampler.__module__].__file__ or "")
    (tmp_path / source.name).write_bytes(source.read_bytes())
    seen = "import planner_batches, sys; print({'planner', 'accelerate', 'lightning', 'transformers'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", seen], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
    vermin = Path(sys.executable).with_name("vermin")
    subprocess.run([vermin, "-t=3.8-", "--violations", "--no-tips", source], check=True)
