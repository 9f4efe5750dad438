"""`planner train` as the operator meets it, until it reaches a device."""

from pathlib import Path

import pytest

from planner import json_records
from tests.planner.cli.commands import LOCAL, Planner
from tests.planner.plans import plan, planned


@pytest.fixture
def images(planner: Planner) -> str:
    """A directory that holds the first half of one of MNIST's files."""
    Path("images").mkdir()
    (Path("images") / "train-images-idx3-ubyte").write_bytes(b"\x00\x00\x08\x03")
    return "images"


def test_train_needs_data(planner: Planner) -> None:
    Path("fleet.toml").write_text(LOCAL)
    assert planner("train").problem() == "no data: name a directory with --data, or a job of your own with --job"


def test_train_without_a_plan_says_how_to_make_one(planner: Planner, shared_images: str) -> None:
    Path("fleet.toml").write_text(LOCAL)
    problem = planner("train", "--data", shared_images).problem()
    assert problem.startswith("cannot read plan.json: No such file or directory; run `planner recommend` first")


def test_a_plan_that_is_named_and_not_there_is_told_before_data_are_missed(planner: Planner) -> None:
    Path("fleet.toml").write_text(LOCAL)
    assert planner("train", "absent.json").problem().startswith("cannot read absent.json: No such file or directory")


def test_a_plan_for_other_images_is_refused(planner: Planner, shared_images: str) -> None:
    Path("fleet.toml").write_text(LOCAL)
    json_records.save(plan(planned("a"), model="cifar10"), Path("plan.json"))
    assert "profile again with the same --data" in planner("train", "--data", shared_images).problem()


def test_a_plan_is_what_is_run_and_another_one_is_made_without_it(planner: Planner) -> None:
    Path("fleet.toml").write_text(LOCAL)
    problem = planner("train", "--strategy", "gaia").problem()
    assert problem == (
        "--strategy gaia: a plan has its own, and is what is trained; make another one with `planner recommend`, "
        "or here with --metric"
    )
    named = planner("train", "plan.json", "--metric", "time").problem()
    assert named == "--metric time makes a plan; leave it out to train plan.json"
    resumed = planner("train", "--resume", "runs/x", "--metric", "time").problem()
    assert resumed == "--metric time makes a plan; leave it out to train on from runs/x"


def test_what_is_no_run_folder_cannot_be_resumed(planner: Planner) -> None:
    Path("fleet.toml").write_text(LOCAL)
    problem = planner("train", "--resume", "runs/none").problem()
    assert problem == (
        "cannot resume runs/none: the folder does not exist; give --resume a run folder that `planner train` made"
    )


def test_a_package_that_is_missing_is_named_before_anything_is_read(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.train.trackers.request.find_spec", lambda package: None)
    problem = planner("train", "--tensorboard", "runs").problem()
    assert problem.endswith("is not installed on this machine; remedy: pip install 'edge-cluster-planner[tensorboard]'")


@pytest.fixture
def shared_images(planner: Planner) -> str:
    """A few images as one npz."""
    import numpy as np

    Path("few").mkdir()
    images, labels = np.zeros((4, 32, 32, 3), np.uint8), np.arange(4)
    np.savez(Path("few") / "few.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    return "few"
