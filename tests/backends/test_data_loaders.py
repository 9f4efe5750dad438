"""A job may give DataLoaders, whose workers, samplers and collate_fn make planner's batches."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends.data.loader import BatchSource
from backends.data.micro_batches import parts_of
from backends.jobs.failure import JobFailure
from backends.protocol.member_specs import DataPart, JobSpec, MemberSpec, ReplicaSpec
from backends.training.workload import MemberData, Workload, code_of, member_data, workload
from profilers.records.steps import ComputeSettings
from tests.installed import computes_with

pytestmark = computes_with("torch")

JOB = """
import os
from types import SimpleNamespace
import numpy as np
import torch
from torch import nn
from torch.utils.data import (BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler,
                              Subset, SubsetRandomSampler, WeightedRandomSampler, get_worker_info)
from torch.utils.data.distributed import DistributedSampler

class Places(Dataset):
    targets = [place % 4 for place in range(40)]
    def __len__(self):
        return 40
    def __getitem__(self, place):
        if FAILS and place == 7 and get_worker_info() is not None:
            raise KeyError("no such picture")
        return torch.tensor([float(place)]), place % 4

FAILS = False

class InOrder(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, every = (info.id, info.num_workers) if info else (0, 1)
        return ((torch.tensor([float(place)]), place % 4) for place in range(first, 40, every))

started = set()

def start(worker):
    started.add(worker)

def told(samples):
    x, y = zip(*samples)
    worker = get_worker_info()
    return torch.stack(x), torch.tensor([os.getpid() if worker and worker.id in started else 0] * len(y))

def job(train=None, test=None, **others):
    train = Places() if train is None else train
    return SimpleNamespace(**{**dict(model=nn.Linear(1, 4), train=train, test=Places() if test is None else test,
                                     forward=lambda model, batch: (model(batch[0]), batch[1]),
                                     loss=lambda outputs, targets: outputs.mean()), **others})

def plain():
    return job()

def shuffled():
    return job(DataLoader(Places(), batch_size=5, shuffle=True))

def workers():
    return job(DataLoader(Places(), 5, shuffle=True, num_workers=2, prefetch_factor=3, drop_last=True))

def at_work():
    return job(DataLoader(Places(), 5, num_workers=2, worker_init_fn=start, collate_fn=told),
               DataLoader(Places(), 5, num_workers=2, worker_init_fn=start, collate_fn=told, persistent_workers=True))

def starting_anew():
    return job(test=DataLoader(Places(), 5, num_workers=1, worker_init_fn=start, collate_fn=told))

def in_order():
    return job(DataLoader(Places(), 5, num_workers=1))

def weighted():
    weights = [9.0 if place % 4 == 1 else 1.0 for place in range(40)]
    return job(DataLoader(Places(), 5, sampler=WeightedRandomSampler(weights, 40)))

def subsets():
    return job(DataLoader(Places(), 5, sampler=SubsetRandomSampler(range(0, 40, 2)), num_workers=1),
               DataLoader(Places(), 5, sampler=SubsetRandomSampler(range(1, 40, 2)), num_workers=1))

def single():
    return job(DataLoader(Places(), 5, sampler=SubsetRandomSampler([3])))

def few():
    return job(DataLoader(Places(), 5, sampler=WeightedRandomSampler([1.0] * 40, 2)))

def empty():
    return job(DataLoader(Subset(Places(), []), 5))

def scaling():
    class Scaling(DataLoader):
        def __iter__(self):
            return ((x / 255, y) for x, y in super().__iter__())
    return job(Scaling(Places(), 5))

def iterable():
    return job(DataLoader(InOrder(), 5, num_workers=2), DataLoader(InOrder(), 5))

def own_batches():
    return job(DataLoader(Places(), batch_sampler=BatchSampler(SequentialSampler(Places()), 4, True)))

class Buckets(BatchSampler):
    pass

def buckets():
    return job(DataLoader(Places(), batch_sampler=Buckets(SequentialSampler(Places()), 4, True)))

def no_batches():
    return job(DataLoader(Places(), batch_size=None))

def distributed():
    return job(test=DataLoader(Places(), 5, sampler=DistributedSampler(Places(), 2, 0)))

def two_collates():
    return job(DataLoader(Places(), 5, collate_fn=told), collate=told)

def with_state(shuffle):
    return job(DataLoader(Places(), 5, shuffle=shuffle, num_workers=1), state=lambda batch: torch.zeros(1),
               forward=lambda model, batch, state: (model(batch[0]), batch[1], state))

def lanes():
    return with_state(False)

def shuffled_lanes():
    return with_state(True)

def ragged():
    class Ragged(Places):
        def __getitem__(self, place):
            return torch.zeros(1 + max(0, place - 2)), 0
    return job(DataLoader(Ragged(), 5, num_workers=1))

def failing():
    global FAILS
    FAILS = True
    return job(DataLoader(Places(), 5, num_workers=1))
"""


@pytest.fixture(autouse=True)
def _stay_here(monkeypatch):
    monkeypatch.chdir(os.getcwd())


def loaded(folder: Path, name: str, micro_batch: int = 0) -> Workload:
    (folder / "task.py").write_text(JOB)
    job = JobSpec(f"task.py:{name}", str(folder), "task", name)
    return workload(ReplicaSpec("torch", f"task.py:{name}", job=job, compute=ComputeSettings(micro_batch=micro_batch)))


def data_of(found: Workload, part: DataPart | None = None) -> MemberData:
    return member_data(MemberSpec("a", found.spec, "", "", 4, 1, part), found, lambda path: b"", str).data


def drawn(batches: BatchSource, sizes: tuple[int, ...] = (4,) * 10) -> list[int]:
    """The positions of the samples, which they hold themselves, of batches of these sizes."""
    found = []
    for batches.batch in sizes:
        parts = parts_of(next(batches))
        assert sum(len(part.batch[0]) for part in parts) == batches.batch
        found += [int(sample) for part in parts for sample in part.batch[0]]
    batches.close()
    return found


def evaluated(data: MemberData) -> list[int]:
    return [int(sample) for _, batch in data[1].batches(3) for sample in batch[0]]


def worker_pids(batch: Any) -> set[int]:
    return {int(pid) for pid in batch[1]}


@pytest.mark.parametrize("name", ["shuffled", "workers"])
@pytest.mark.parametrize("micro_batch", [0, 3])
def test_batches_are_those_of_the_data_set_itself_also_when_their_sizes_change(tmp_path, name, micro_batch) -> None:
    sizes = (4, 4, 4, 7, 7, 2, 9, 9, 9, 4)
    expected = drawn(data_of(loaded(tmp_path, "plain"))[0], sizes)
    assert drawn(data_of(loaded(tmp_path, name, micro_batch))[0], sizes) == expected


def test_workers_make_the_batches_as_the_loader_has_it_and_end_with_the_run(tmp_path) -> None:
    batches, test = data_of(loaded(tmp_path, "at_work"))
    pids = worker_pids(next(batches)) | worker_pids(next(batches))
    assert len(pids) == 2 and os.getpid() not in pids
    batches.close()
    evaluations = [{pid for _, batch in test.batches(4) for pid in worker_pids(batch)} for _ in range(2)]
    assert evaluations[0] == evaluations[1] and 0 not in evaluations[0], "workers that persist are kept"
    test.close()
    for pid in pids | evaluations[0]:
        assert not Path(f"/proc/{pid}").exists()


def test_workers_of_a_test_set_that_do_not_persist_start_anew(tmp_path) -> None:
    _, test = data_of(loaded(tmp_path, "starting_anew"))
    first, second = ({pid for _, batch in test.batches(4) for pid in worker_pids(batch)} for _ in range(2))
    assert first != second


def test_the_order_of_a_loader_is_kept(tmp_path) -> None:
    assert drawn(data_of(loaded(tmp_path, "in_order"))[0]) == list(range(40))
    assert drawn(data_of(loaded(tmp_path, "own_batches"))[0]) == list(range(40))
    halves = [
        drawn(data_of(loaded(tmp_path, "in_order"), DataPart((1.0, 1.0), member, 0))[0], (4,) * 5) for member in (0, 1)
    ]
    assert all(half == sorted(half) for half in halves) and sorted(halves[0] + halves[1]) == list(range(40))


def test_a_weighted_sampler_draws_as_it_is_weighted_of_the_samples_of_each_device(tmp_path) -> None:
    halves = [
        drawn(data_of(loaded(tmp_path, "weighted"), DataPart((1.0, 1.0), member, 0))[0], (40,) * 30)
        for member in (0, 1)
    ]
    assert not set(halves[0]) & set(halves[1])
    kinds = Counter(place % 4 for place in halves[0] + halves[1])
    assert 0.7 < kinds[1] / sum(kinds.values()) < 0.8, "9 of 12 by the weights"


def test_subsets_are_kept_apart(tmp_path) -> None:
    data = data_of(loaded(tmp_path, "subsets"))
    train, test = drawn(data[0]), evaluated(data)
    assert sorted(set(train)) == list(range(0, 40, 2)) and train != sorted(train)
    assert sorted(test) == list(range(1, 40, 2))


def test_a_sampler_that_leaves_a_device_without_samples_is_refused(tmp_path) -> None:
    found = loaded(tmp_path, "single")
    with pytest.raises(JobFailure, match="SubsetRandomSampler gives none of the samples of this device"):
        for member in (0, 1):
            drawn(data_of(found, DataPart((1.0, 1.0), member, 0))[0], (1,))


def test_a_sampler_that_gives_a_device_samples_in_some_epochs_only_is_drawn_from_until_it_does(tmp_path) -> None:
    found = loaded(tmp_path, "few")
    for member in (0, 1):
        drawn(data_of(found, DataPart((9.0, 1.0), member, 0))[0])


def test_an_iterable_data_set_is_read_by_its_workers_in_one_order(tmp_path) -> None:
    data = data_of(loaded(tmp_path, "iterable"))
    assert drawn(data[0], (4, 4, 8, 8, 16)) == list(range(40))
    assert evaluated(data) == list(range(40))


def test_a_job_with_a_state_is_read_in_lanes_by_workers_too(tmp_path) -> None:
    assert drawn(data_of(loaded(tmp_path, "lanes"))[0], (4, 4)) == [0, 10, 20, 30, 1, 11, 21, 31]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("buckets", "a batch_sampler of its own, Buckets, and planner makes batches of other sizes; give a batch_size"),
        ("no_batches", "its train is .* batch_size=None, .*; let its data set yield samples, one by one, and give a"),
        ("distributed", "its test has a DistributedSampler, and planner itself deals .*; give shuffle=True"),
        ("empty", "its train is empty"),
        ("scaling", "its train is a Scaling with an __iter__ of its own, and planner makes the batches; give a plain"),
        ("two_collates", "it has a collate, and the DataLoader of its train has a collate_fn; give one of them"),
        ("shuffled_lanes", "its train has a RandomSampler, and a job with a state needs its samples in order"),
    ],
)
def test_a_loader_whose_meaning_would_be_lost_is_refused(tmp_path, name, message) -> None:
    with pytest.raises(JobFailure, match=message):
        loaded(tmp_path, name)


def test_what_a_worker_fails_with_is_told_in_one_line(tmp_path) -> None:
    found = loaded(tmp_path, "failing")
    with pytest.raises(JobFailure) as failure, code_of(found.spec):
        drawn(data_of(found)[0])
    assert str(failure.value) == f"KeyError: 'no such picture', at {tmp_path}/task.py:17"
    with pytest.raises(JobFailure) as refused:
        loaded_ragged = loaded(tmp_path, "ragged")
        drawn(data_of(loaded_ragged)[0])
    assert str(refused.value).startswith("the job cannot be used: no batch can be made of its samples: ")
    assert "\n" not in str(refused.value)


def test_a_loader_is_told_of(tmp_path) -> None:
    found = loaded(tmp_path, "workers").brought
    assert found is not None
    assert found.note == (
        "train is a DataLoader: batches of the plan take the place of its own, and 2 workers read it, "
        "in the order of its RandomSampler"
    )
    assert loaded(tmp_path, "plain").brought.note == ""  # type: ignore[union-attr]


def test_numpy_indices_reach_a_data_set_as_numbers(tmp_path) -> None:
    batch = data_of(loaded(tmp_path, "in_order"))[0]
    assert np.asarray(next(batch)[0]).ravel().tolist() == [0.0, 1.0, 2.0, 3.0]
    batch.close()
