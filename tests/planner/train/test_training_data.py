"""Images are sent in shards; a job is sent as it is and reads its data on each device."""

import hashlib
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from backends.data import dataset
from backends.protocol.member_specs import IID
from backends.protocol.orders import AssembleProject, FindFile, FindMissing, StoreFile
from planner.errors import RunError
from planner.fleet.device import Device
from planner.jobs.reference import find_job
from planner.train.data_division import DataDivision
from planner.train.training_data import JobData, Placed, ShippedImages, load_dataset, packed
from profilers.records.steps import ComputeSettings
from tests.planner.plans import plan, planned


def numbered(count: int = 120) -> dataset.Dataset:
    """Images whose only pixel tells them apart."""
    images = np.arange(count, dtype=np.uint8).reshape(count, 1, 1, 1)
    return dataset.Dataset(images, np.zeros(count, np.int64), images[:1], np.zeros(1, np.int64), 2)


class Cache:
    """An agent of a device that has a cache and nothing else."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.stored: list[str] = []
        self.assembled: list[AssembleProject] = []
        self.named: dict[str, str] = {}

    def call(self, order: Any, timeout_s: float | None = None) -> Any:
        if isinstance(order, FindFile):
            there = self.files.get(order.name)
            return order.name if there is not None and hashlib.sha256(there).hexdigest() == order.digest else None
        if isinstance(order, FindMissing):
            return [digest for digest in order.digests if f"file-{digest}" not in self.files]
        assert isinstance(order, AssembleProject)
        self.assembled.append(order)
        return f"/cache/{order.name}"

    def start(self, order: StoreFile, blob: bytes) -> Any:
        path = self.store(order.name, blob)
        return SimpleNamespace(result=lambda timeout_s=None: path)

    def store(self, name: str, data: bytes, source: str | None = None) -> str:
        self.stored.append(name)
        self.files[name] = data
        return name

    def stands_for(self, path: str, source: str) -> None:
        self.named[path] = source


def placed(steps: dict[str, float], seed: int = 0) -> tuple[dict[str, list[int]], Cache]:
    """The images of each member, all of which have the same cache."""
    cache: Any = Cache()
    data, names = ShippedImages(numbered()), list(steps)
    found = {}
    for name, part in DataDivision(IID, seed, steps).parts().items():
        where = data.place(cache, Device(name=name), plan(*map(planned, names)), part, lambda size: None)
        found[name] = dataset.unpack(cache.files[where.train])[0].ravel().tolist()
    return found, cache


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.0, 1e5), min_size=1, max_size=6), st.integers(0, 2**31 - 1))
def test_nothing_is_lost_and_the_same_seed_deals_the_same(steps: list[float], seed: int) -> None:
    by_name = {f"d{i}": each for i, each in enumerate(steps)}
    first, again = (placed(by_name, seed)[0] for _ in range(2))
    assert sorted(sum(first.values(), [])) == list(range(120))
    assert first == again


def test_a_device_is_sent_images_of_its_labels_only() -> None:
    of_ten = numbered()._replace(train_labels=np.arange(120, dtype=np.int64) % 10)
    cache: Any = Cache()
    names = ["b", "a"]
    found = {}
    for name, part in DataDivision("labels=5", 0, {"a": 30.0, "b": 10.0}).parts().items():
        where = ShippedImages(of_ten).place(
            cache, Device(name=name), plan(*map(planned, names)), part, lambda size: None
        )
        images, labels = dataset.unpack(cache.files[where.train])
        assert len(set(labels.tolist())) == 5 and (images.ravel() % 10 == labels).all()
        found[name] = images.ravel().tolist()
    assert sorted(found["a"] + found["b"]) == list(range(120))


def test_images_that_cannot_be_divided_are_refused_before_any_device_is_reached() -> None:
    with pytest.raises(
        RunError, match="--partition dirichlet=0.0001: it leaves no sample to [ab]; give a larger ALPHA"
    ):
        ShippedImages(numbered()).check_parts(DataDivision("dirichlet=0.0001", 0, {"a": 1.0, "b": 1.0}).parts())


def test_what_a_device_has_is_not_sent_again() -> None:
    _, cache = placed({"a": 1.0, "b": 1.0})
    assert len(cache.stored) == len(set(cache.stored)) == 3  # two shards, and the test set once


def test_equal_content_has_an_equal_name_so_that_it_is_sent_once() -> None:
    same, other = numbered(10), numbered(11)
    names = [packed(d.train_images, d.train_labels).name for d in (same, same, other)]
    assert names[0] == names[1] != names[2]


def test_a_missing_data_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"no directory {tmp_path}/none; give the one that holds the images"):
        load_dataset(str(tmp_path / "none"))


def test_a_job_is_sent_with_its_project_and_told_its_part_and_the_folder_of_its_data(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("def job():\n    return 1\n")
    job = find_job("task.py:job", tmp_path)
    cache: Any = Cache()
    sizes: list[int] = []
    part = DataDivision(IID, 5, {"a": 3.0, "b": 1.0}).parts()["b"]
    compute = ComputeSettings(4, "bf16")
    own = plan(planned("a"), planned("b")._replace(compute=compute), model=job.text, job=True)
    found: Placed = JobData(job).place(cache, Device(name="b", data="/mnt/set"), own, part, sizes.append)
    spec = found.replica.job
    assert spec is not None
    assert (spec.folder, spec.module, spec.function, spec.data) == (
        f"/cache/project-{job.project.fingerprint}", "task", "job", "/mnt/set",
    )  # fmt: skip
    assert (
        found.part == part
        and found.part.weights == (3.0, 1.0)
        and found.replica.seed == 5
        and found.replica.compute == compute
    )
    assert sizes == [len("def job():\n    return 1\n")] and cache.named == {spec.folder: str(tmp_path)}
    stored = list(cache.stored)
    JobData(job).place(cache, Device(name="a"), own, part, sizes.append)
    assert cache.stored == stored


def test_folders_of_pictures_are_a_data_set(tmp_path: Path) -> None:
    for part, name in itertools.product(("train", "test"), ("cat", "dog")):
        (tmp_path / part / name).mkdir(parents=True)
        Image.new("L", (4, 3)).save(tmp_path / part / name / "a.png")
    assert load_dataset(str(tmp_path)).train_images.shape == (2, 3, 4, 1)
    (tmp_path / "test" / "dog" / "a.png").write_bytes(b"")
    with pytest.raises(RunError, match=r"dog/a\.png is damaged"):
        load_dataset(str(tmp_path))
