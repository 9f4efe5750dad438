"""Metrics that are not means over samples are computed of the whole test set, in each framework."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

from backends.data.loader import EvaluationSet
from backends.jobs.failure import JobFailure
from backends.protocol.frames import Scores
from backends.protocol.member_specs import JobSpec, ReplicaSpec
from backends.training.step import evaluate
from backends.training.workload import Workload, workload
from tests.installed import computes_with, needs

pytestmark = computes_with("torch")

#: 50 samples of three inputs, and classes that depend on them a little.
DATA = """
import math
from types import SimpleNamespace
import numpy as np

x = np.random.RandomState(3).randn(50, 3).astype(np.float32)
y = (x[:, 0] > 0.4).astype(np.int64)

def f1(chosen, targets):
    right = ((chosen == 1) & (targets == 1)).sum()
    return 2 * right / max(1, (chosen == 1).sum() + (targets == 1).sum())
"""
TORCH = (
    DATA
    + """
import torch
from torch import nn
from torch.utils.data import TensorDataset

data = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
cross_entropy = nn.functional.cross_entropy

def plain(**others):
    return SimpleNamespace(**{**dict(model=nn.Linear(3, 2), train=data, test=data, loss=cross_entropy), **others})

def several():
    return plain(metrics={
        "f1": (lambda outputs, targets: f1(outputs.argmax(1).numpy(), targets.numpy()), "higher", "epoch"),
        "ppl": (cross_entropy, "lower", math.exp),
        "whole_ppl": (lambda outputs, targets: cross_entropy(outputs, targets).exp(), "lower", "epoch"),
        "ce": cross_entropy,
    })

def overflowing():
    large = lambda outputs, targets: 1e6 + 0 * outputs.sum()
    return plain(metrics={
        "ppl": (large, "lower", math.exp), "log": (large, "lower", lambda mean: math.log(-mean)),
        "share": (large, "lower", lambda mean: mean / 0),
    })

def needs_both_classes():
    def auc(outputs, targets):
        if len(targets) < 5:
            raise ValueError("only one class is present")
        return 0.5
    return plain(metrics={"auc": (auc, None, "epoch")})

def dictionaries():
    def forward(model, batch):
        return {"scores": model(batch[0]), "names": ["a"] * len(batch[1])}, [batch[1]]
    def samples(outputs, targets):
        assert len(outputs["scores"]) == len(targets[0])
        return sum(map(len, outputs["names"]))
    return plain(forward=forward, loss=lambda outputs, targets: cross_entropy(outputs["scores"], targets[0]),
                 metrics={"samples": (samples, "higher", "epoch")})

def batch_second():
    def forward(model, batch):
        return model(batch[0])[None].repeat(3, 1, 1), batch[1]
    return plain(forward=forward, loss=lambda outputs, targets: cross_entropy(outputs[0], targets),
                 metrics={"f1": (f1, "higher", "epoch")})

def two_numbers():
    return plain(metrics={"f1": (lambda outputs, targets: outputs.mean(0), "higher", "epoch")})

def of_tensors():
    return plain(metrics={"ppl": (cross_entropy, "lower", torch.exp)})
"""
)
TENSORFLOW = (
    DATA
    + """
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices((x, y))
cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

def plain(**others):
    model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
    return SimpleNamespace(**{**dict(model=model, train=data, test=data, loss=cross_entropy), **others})

def several():
    return plain(metrics={
        "f1": (lambda outputs, targets: f1(tf.argmax(outputs, 1).numpy(), targets.numpy()), "higher", "epoch"),
        "ppl": (cross_entropy, "lower", math.exp),
        "whole_ppl": (lambda outputs, targets: tf.exp(cross_entropy(targets, outputs)), "lower", "epoch"),
        "ce": cross_entropy,
    })

def of_keras():
    return plain(metrics={"right": (tf.keras.metrics.SparseCategoricalAccuracy(), "higher", "epoch"),
                          "accuracy": lambda outputs, targets:
                              tf.reduce_mean(tf.cast(tf.argmax(outputs, 1) == targets, tf.float32))})

def batch_second():
    def forward(model, batch):
        return tf.tile(model(batch[0])[None], (3, 1, 1)), batch[1]
    return plain(forward=forward, loss=lambda outputs, targets: tf.reduce_mean(outputs[0]),
                 metrics={"f1": (f1, "higher", "epoch")})
"""
)
FRAMEWORKS = pytest.mark.parametrize("kind", ["torch", pytest.param("tensorflow", marks=needs("tensorflow"))])


@pytest.fixture(autouse=True)
def _stay_here(monkeypatch):
    monkeypatch.chdir(os.getcwd())


def loaded(folder: Path, name: str, kind: str = "torch") -> Workload:
    (folder / "task.py").write_text(TORCH if kind == "torch" else TENSORFLOW)
    return workload(ReplicaSpec(kind, f"task.py:{name}", job=JobSpec(f"task.py:{name}", str(folder), "task", name)))


def scores(found: Workload, replica: object = None) -> Scores:
    """Of batches of 24, 24 and 2 samples."""
    assert found.brought is not None
    test: EvaluationSet = found.brought.test
    test.most_at_once = 24
    return evaluate(replica or found.build().replica, test)


def outputs_of(replica: object, x: np.ndarray) -> np.ndarray:
    """By the weights alone: a kernel and a bias, of torch or of Keras."""
    kernel, bias = np.split(replica.weights, [6])  # type: ignore[attr-defined]
    shape = replica.variables[0].shape  # type: ignore[attr-defined]
    return x @ (kernel.reshape(shape).T if shape == (2, 3) else kernel.reshape(shape)) + bias


@FRAMEWORKS
def test_metrics_of_the_whole_test_set_are_those_of_a_direct_computation(tmp_path, kind) -> None:
    found = loaded(tmp_path, "several", kind)
    replica = found.build().replica
    x = np.random.RandomState(3).randn(50, 3).astype(np.float32)
    y = (x[:, 0] > 0.4).astype(np.int64)
    outputs = outputs_of(replica, x)
    losses = np.log(np.exp(outputs).sum(1)) - outputs[np.arange(50), y]
    chosen = outputs.argmax(1)
    f1 = 2 * ((chosen == 1) & (y == 1)).sum() / max(1, (chosen == 1).sum() + (y == 1).sum())
    ppl = math.exp(losses.mean())
    for _ in range(2):  # a second evaluation has nothing of the first
        wanted = {"f1": f1, "ppl": ppl, "whole_ppl": ppl, "ce": losses.mean()}
        assert scores(found, replica).metrics == pytest.approx(wanted, rel=1e-5)


@FRAMEWORKS
def test_outputs_that_cannot_be_joined_are_refused_before_training(tmp_path, kind) -> None:
    shapes = r"\(3, 1, 2\) and \(3, 2, 2\)"
    with pytest.raises(JobFailure, match=f"tensors of {shapes} do not fit; let forward return them with the samples"):
        loaded(tmp_path, "batch_second", kind)


@needs("tensorflow")
def test_a_metric_of_keras_may_be_of_the_whole_test_set(tmp_path) -> None:
    found = loaded(tmp_path, "of_keras", "tensorflow")
    replica = found.build().replica
    for _ in range(2):
        metrics = scores(found, replica).metrics
        assert metrics["right"] == pytest.approx(metrics["accuracy"])


def test_a_metric_that_is_no_number_any_more_is_left_out(tmp_path) -> None:
    assert scores(loaded(tmp_path, "overflowing")).metrics == {}


def test_a_metric_may_refuse_few_samples_and_take_what_forward_returns(tmp_path) -> None:
    assert scores(loaded(tmp_path, "needs_both_classes")).metrics == {"auc": 0.5}
    assert scores(loaded(tmp_path, "dictionaries")).metrics == {"samples": 50.0}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("two_numbers", "its metric f1 gives 2 numbers for a batch; it must give one"),
        ("of_tensors", "the function of the mean of its metric ppl takes no number .*; give one as math.exp is"),
    ],
)
def test_a_metric_of_no_use_is_refused_before_training(tmp_path, name, message) -> None:
    with pytest.raises(JobFailure, match=message):
        loaded(tmp_path, name)
