"""A job that carries a state from batch to batch trains as a loop does that carries it itself."""

import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends.data.sample_order import LaneOrder, all_in_lanes, stretch
from backends.frameworks.optimizer import GradientSettings, OptimizerSettings
from backends.jobs.failure import JobFailure
from backends.protocol.member_specs import DataPart, JobSpec, MemberSpec, ReplicaSpec, StreamOrder
from backends.training.step import evaluate, step
from backends.training.workload import MemberData, Workload, member_data, workload
from profilers.records.steps import ComputeSettings
from tests.installed import computes_with, needs

pytestmark = computes_with("torch")

SAMPLES, LANES, STEPS, RATE = 43, 4, 14, 0.1
#: A long series in chunks of five, which a recurrent network continues.
DATA = """
from types import SimpleNamespace
import numpy as np

series = np.sin(np.arange(43 * 5 + 1) * 0.7).astype(np.float32)
x, y = series[:-1].reshape(43, 5, 1), series[1:].reshape(43, 5, 1)
"""
TORCH = (
    DATA
    + """
import torch
from torch import nn
from torch.utils.data import IterableDataset, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.RNN(1, 6, batch_first=True), nn.Linear(6, 1)
    def forward(self, x, hidden):
        seen, hidden = self.rnn(x, hidden)
        return self.out(seen), hidden

def forward(model, batch, state):
    outputs, hidden = model(batch[0], state["hidden"])
    return outputs, batch[1], {"hidden": hidden}

def plain(**others):
    data = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    return SimpleNamespace(**{**dict(model=Net(), train=data, test=data, loss=nn.functional.mse_loss, forward=forward,
                                     state=lambda batch: {"hidden": torch.zeros(1, len(batch[0]), 6)}), **others})

def without_forward():
    return plain(forward=None)

def forgetful():
    return plain(forward=lambda model, batch, state: forward(model, batch, state)[:2])

def of_another_shape():
    return plain(forward=lambda model, batch, state: forward(model, batch, state)[:2] + (torch.zeros(3),))

def in_numpy():
    return plain(state=lambda batch: {"hidden": np.zeros((1, len(batch[0]), 6), np.float32)})

def without_a_first():
    return plain(state=lambda batch: {"hidden": None})

def in_an_object():
    return plain(state=lambda batch: SimpleNamespace(hidden=0),
                 forward=lambda model, batch, state: (model(batch[0], None)[0], batch[1], state))

class InOrder(IterableDataset):
    def __iter__(self):
        return iter(list(zip(torch.from_numpy(x), torch.from_numpy(y))))

def stream():
    return plain(train=InOrder())
"""
)
TENSORFLOW = (
    DATA
    + """
import tensorflow as tf

class Net(tf.Module):
    def __init__(self):
        super().__init__()
        draw = np.random.RandomState(1).randn
        shapes = (1, 6), (6, 6), (6, 1)
        self.a, self.b, self.c = (tf.Variable(0.3 * draw(*shape).astype(np.float32)) for shape in shapes)
    def __call__(self, x, hidden):
        seen = []
        for at in range(5):
            hidden = tf.tanh(x[:, at] @ self.a + hidden @ self.b)
            seen.append(hidden @ self.c)
        return tf.stack(seen, 1), hidden

def forward(model, batch, state, training):
    outputs, hidden = model(batch[0], state[0])
    return outputs, batch[1], [hidden]

def plain(**others):
    data = tf.data.Dataset.from_tensor_slices((x, y))
    return SimpleNamespace(**{**dict(model=Net(), train=data, test=data, forward=forward,
                                     loss=lambda outputs, targets: tf.reduce_mean((outputs - targets) ** 2),
                                     state=lambda batch: [np.zeros((len(batch[0]), 6), np.float32)]), **others})
"""
)
FRAMEWORKS = pytest.mark.parametrize("kind", ["torch", pytest.param("tensorflow", marks=needs("tensorflow"))])


@pytest.fixture(autouse=True)
def _stay_here(monkeypatch):
    monkeypatch.chdir(os.getcwd())


def loaded(folder: Path, name: str = "plain", kind: str = "torch", micro_batch: int = 0) -> Workload:
    (folder / "task.py").write_text(TORCH if kind == "torch" else TENSORFLOW)
    job = JobSpec(f"task.py:{name}", str(folder), "task", name)
    return workload(ReplicaSpec(kind, f"task.py:{name}", job=job, compute=ComputeSettings(micro_batch=micro_batch)))


def data_of(found: Workload, part: DataPart | None = None, **others: Any) -> MemberData:
    member = MemberSpec("a", found.spec, "", "", LANES, 1, part)._replace(**others)
    return member_data(member, found, lambda path: b"", str).data


def plain_loop(found: Workload, parts: tuple[int, ...] = (LANES,)) -> tuple[np.ndarray, list[float], float]:
    """Weights, losses and test loss of a loop in the framework itself."""
    assert found.brought is not None
    job, kind = found.brought.job, found.spec.framework
    run = _torch_loop if kind == "torch" else _tensorflow_loop
    series = np.sin(np.arange(SAMPLES * 5 + 1) * 0.7).astype(np.float32)
    x, y = series[:-1].reshape(SAMPLES, 5, 1), series[1:].reshape(SAMPLES, 5, 1)
    starts = np.arange(LANES) * SAMPLES // LANES
    training = [starts + at % (SAMPLES // LANES) for at in range(STEPS)]
    test = [starts + at for at in range(SAMPLES // LANES)]
    test.append(np.setdiff1d(np.arange(SAMPLES), np.concatenate(test)))
    return run(job, x, y, training, test, parts)


def _torch_loop(job: Any, x: Any, y: Any, training: Any, test: Any, parts: Any) -> Any:
    import torch

    model, mse = job.model, torch.nn.functional.mse_loss
    sgd, hidden, losses = torch.optim.SGD(model.parameters(), RATE), [torch.zeros(1, size, 6) for size in parts], []
    for chosen in training:
        sgd.zero_grad()
        loss = 0.0
        for place, own in enumerate(np.split(chosen, np.cumsum(parts)[:-1])):
            outputs, after = model(torch.from_numpy(x[own]), hidden[place])
            hidden[place] = after.detach()
            loss = loss + len(own) / len(chosen) * mse(outputs, torch.from_numpy(y[own]))
        loss.backward()
        sgd.step()
        losses.append(float(loss.detach()))
    total, state = 0.0, torch.zeros(1, LANES, 6)
    with torch.no_grad():
        for chosen in test:
            state = state if state.shape[1] == len(chosen) else torch.zeros(1, len(chosen), 6)
            outputs, state = model(torch.from_numpy(x[chosen]), state)
            total += len(chosen) * float(mse(outputs, torch.from_numpy(y[chosen])))
    weights = torch.cat([each.detach().ravel() for each in model.parameters()]).numpy()
    return weights, losses, total / SAMPLES


def _tensorflow_loop(job: Any, x: Any, y: Any, training: Any, test: Any, parts: Any) -> Any:
    import tensorflow as tf

    model = job.model.module
    hidden, losses = [tf.zeros((size, 6)) for size in parts], []
    for chosen in training:
        with tf.GradientTape() as tape:
            loss = 0.0
            for place, own in enumerate(np.split(chosen, np.cumsum(parts)[:-1])):
                outputs, after = model(x[own], hidden[place])
                hidden[place] = tf.stop_gradient(after)
                loss += len(own) / len(chosen) * tf.reduce_mean((outputs - y[own]) ** 2)
        for variable, gradient in zip(model.variables, tape.gradient(loss, model.variables), strict=True):
            variable.assign_sub(RATE * gradient)
        losses.append(float(loss))
    total, state = 0.0, tf.zeros((LANES, 6))
    for chosen in test:
        state = state if len(state) == len(chosen) else tf.zeros((len(chosen), 6))
        outputs, state = model(x[chosen], state)
        total += len(chosen) * float(tf.reduce_mean((outputs - y[chosen]) ** 2))
    return np.concatenate([each.numpy().ravel() for each in model.variables]), losses, total / SAMPLES


@FRAMEWORKS
@pytest.mark.parametrize(("micro_batch", "parts"), [(0, (4,)), (3, (2, 2))])
def test_it_trains_as_a_loop_that_carries_the_state_itself(tmp_path, kind, micro_batch, parts) -> None:
    weights, losses, _ = plain_loop(loaded(tmp_path, kind=kind), parts)
    found = loaded(tmp_path, kind=kind, micro_batch=micro_batch)
    batches, test = data_of(found)
    replica = found.build().replica
    for place, expected in enumerate(losses):
        if place == STEPS // 2:
            evaluate(replica, test)  # which leaves the state of training as it was
        assert step(replica, batches, GradientSettings(RATE)).loss == pytest.approx(expected, rel=1e-4)
        replica.update(OptimizerSettings(momentum=0.0))
    replica.fetch()
    np.testing.assert_allclose(replica.weights, weights, rtol=1e-4, atol=1e-6)


def test_an_initial_state_of_numpy_is_carried_on_as_one_of_tensors(tmp_path) -> None:
    losses = []
    for name in ("plain", "in_numpy"):
        found = loaded(tmp_path, name)
        replica, batches = found.build().replica, data_of(found)[0]
        losses.append([step(replica, batches, GradientSettings(RATE)).loss for _ in range(3)])
    assert losses[0] == losses[1]


@FRAMEWORKS
def test_an_evaluation_begins_with_the_initial_state_and_sees_each_sample_once(tmp_path, kind) -> None:
    weights, _, expected = plain_loop(loaded(tmp_path, kind=kind))
    found = loaded(tmp_path, kind=kind)
    _, test = data_of(found)
    replica = found.build().replica
    replica.set_weights(weights)
    for _ in range(2):
        scores = evaluate(replica, test)
        assert (scores.samples, scores.loss) == (SAMPLES, pytest.approx(expected, rel=1e-4))


@FRAMEWORKS
def test_when_the_size_of_batches_changes_the_state_begins_again(tmp_path, kind) -> None:
    found = loaded(tmp_path, kind=kind)
    batches, _ = data_of(found)
    carried, anew = found.build().replica, loaded(tmp_path, kind=kind).build().replica
    anew.set_weights(carried.weights)
    for size in (4, 4, 2):
        batches.batch = size
        batch = next(batches)
        last = carried.gradient(batch)
    assert last == pytest.approx(anew.gradient(batch), rel=1e-5)


@FRAMEWORKS
def test_each_device_has_a_stretch_of_its_own(tmp_path, kind) -> None:
    found = loaded(tmp_path, kind=kind)
    first = [next(data_of(found, DataPart((1.0, 2.0), member, 0))[0]) for member in range(2)]
    series = np.sin(np.arange(SAMPLES * 5) * 0.7).astype(np.float32).reshape(SAMPLES, 5, 1)
    stretches = np.arange(14), np.arange(14, SAMPLES)
    for batch, own in zip(first, stretches, strict=True):
        np.testing.assert_array_equal(batch[0], series[own[np.arange(4) * len(own) // 4]])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("without_forward", r"it has a state, and no forward that takes it; give forward\(model, batch, state\)"),
        ("forgetful", "its forward returns a value of type tuple; it must return outputs, targets and state"),
        (
            "without_a_first",
            r"its state has no tensor for a batch, and .* with tensors of \(1, 2, 6\); give both alike",
        ),
        ("in_an_object", "its state holds a value of type SimpleNamespace; give tensors, also in tuples, lists"),
        ("of_another_shape", r"its state has tensors of \(1, 2, 6\) for a batch, and its forward returns .* of \(3,\)"),
    ],
)
def test_a_state_that_cannot_be_carried_is_refused(tmp_path, name, message) -> None:
    with pytest.raises(JobFailure, match=message):
        loaded(tmp_path, name)


def test_what_would_tear_its_samples_apart_is_refused(tmp_path) -> None:
    found = loaded(tmp_path)
    with pytest.raises(JobFailure, match="--partition labels=1: a job with a state needs its samples in order"):
        data_of(found, DataPart((1.0, 1.0), 0, 0, "labels=1", ("a", "b")))
    with pytest.raises(JobFailure, match="--stream rate=3: a job with a state needs its samples in order"):
        data_of(found, stream=StreamOrder("rate=3", 1, 1, "folder"))
    alone = loaded(tmp_path, "stream")
    assert len(next(data_of(alone)[0])[0]) == LANES
    with pytest.raises(JobFailure, match="needs training samples that can be divided into stretches"):
        data_of(alone, DataPart((1.0, 1.0), 0, 0))


@FRAMEWORKS
def test_a_stretch_that_is_shorter_than_a_batch_is_refused(tmp_path, kind) -> None:
    with pytest.raises(JobFailure, match="has 2 for a batch of 4; take a smaller --batch-size, fewer devices or more"):
        data_of(loaded(tmp_path, kind=kind), DataPart((1.0, 20.0), 0, 0))


@pytest.mark.parametrize(("samples", "lanes"), [(43, 4), (40, 4), (3, 8), (1, 1), (10, 10), (11, 3)])
def test_in_lanes_each_sample_follows_the_one_before_it(samples: int, lanes: int) -> None:
    order = LaneOrder(samples)
    drawn = [order.take(lanes) for _ in range(max(1, samples // lanes))]
    assert all((after == before + 1).all() for before, after in itertools.pairwise(drawn))
    assert order.take(lanes).tolist() == drawn[0].tolist()
    order.put_back(drawn[0])
    assert order.take(lanes).tolist() == drawn[0].tolist()
    assert sorted(np.concatenate(list(all_in_lanes(samples, lanes)))) == list(range(samples))
    assert all(len(set(part)) == len(part) <= lanes for part in map(tuple, all_in_lanes(samples, lanes)))


def test_stretches_are_in_proportion_and_leave_nothing_out() -> None:
    parts = [stretch(100, (1.0, 2.5, 0.5), member) for member in range(3)]
    assert np.concatenate(parts).tolist() == list(range(100))
    assert [len(part) for part in parts] == [25, 63, 12] or [len(part) for part in parts] == [25, 62, 13]
