"""Checkpoints come back as they were written, or say why they cannot."""

import contextlib
import json
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis.extra import numpy as arrays

from backends.frameworks.layout import Layout, Variable
from backends.frameworks.optimizer import FIRST_MOMENT, MOMENTUM, SECOND_MOMENT, UPDATES
from backends.protocol.events import Evaluated
from backends.protocol.json_messages import record
from backends.training import checkpoint
from backends.training.checkpoint import Checkpoint
from backends.training.run_spec import last_evaluated
from tests.backends.fakes import arrays_of
from tests.mutations import MUTATIONS, damaged, mutated, written

LAYOUT = Layout(
    (Variable("conv/kernel", (2, 3), 0, 6), Variable("bias", (), 6, 1), Variable("file", (2,), 7, 2)),
    (Variable("norm/mean", (2,), 0, 2),),
)


EVALUATION = {"step": 5, "worker": "tx2", "loss": 1.5, "metrics": {"accuracy": 0.5}, "seconds": 0.1}


def filled(layout=LAYOUT, step=7):
    count, state = layout.parameters, layout.state
    weights = np.arange(count, dtype=np.float32)
    meta = {"step": step, "evaluations": [EVALUATION], "model": "cipher"}
    return Checkpoint(weights, {MOMENTUM: -weights}, np.full(state, 0.5, np.float32), meta, layout)


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "checkpoint.npz")
    checkpoint.write(path, filled())
    return path


def assert_equal(found, expected):
    assert list(found.slots) == list(expected.slots)
    for kind, values in arrays_of(found).items():
        assert values.dtype == np.float32
        np.testing.assert_array_equal(values, arrays_of(expected)[kind])


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_what_adam_keeps_comes_back_with_the_number_of_its_updates(tmp_path, kind):
    path, plain = str(tmp_path / "checkpoint.npz"), filled()
    slots = {FIRST_MOMENT: 2 * plain.weights, SECOND_MOMENT: 3 * plain.weights, UPDATES: np.array([9], np.float32)}
    expected = plain._replace(slots=slots, meta={**plain.meta, "optimizer": kind})
    checkpoint.write(path, expected)
    found = checkpoint.read(path)
    assert_equal(found, expected)
    assert found.layout == LAYOUT


def test_a_checkpoint_of_an_optimizer_that_is_unknown_says_so(tmp_path):
    path, plain = str(tmp_path / "checkpoint.npz"), filled()
    checkpoint.write(path, plain._replace(meta={**plain.meta, "optimizer": "shampoo"}))
    with pytest.raises(ValueError, match="its optimizer 'shampoo' is unknown; known: sgd, lars, adam, adamw"):
        checkpoint.read(path)


@settings(max_examples=30, deadline=None)
@given(shapes=some.lists(arrays.array_shapes(max_dims=3, max_side=4), max_size=4), stateless=some.booleans())
def test_any_model_comes_back(tmp_path_factory, shapes, stateless):
    places, start = [], 0
    for number, shape in enumerate(shapes):
        places.append(Variable(f"{number}/v", shape, start, int(np.prod(shape))))
        start += int(np.prod(shape))
    layout = Layout(tuple(places), () if stateless else LAYOUT.state_variables)
    path = str(tmp_path_factory.mktemp("any") / "c.npz")
    checkpoint.write(path, filled(layout))
    found = checkpoint.read_for(path, layout)
    assert_equal(found, filled(layout))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_one_cut_short_is_refused_by_name(path, share):
    with open(path, "rb") as stream:
        content = stream.read()
    with open(path, "wb") as stream:
        stream.write(content[: int(len(content) * share)])
    for use in (checkpoint.read, checkpoint.peek):
        with pytest.raises(ValueError, match=r"checkpoint\.npz is damaged or not a checkpoint"):
            use(path)


def test_a_changed_bit_is_noticed(path):
    with open(path, "r+b") as stream:
        content = stream.read()
        place = content.index(filled().weights[1:6].tobytes())
        stream.seek(place)
        stream.write(b"\xff")
    with pytest.raises(ValueError, match="damaged"):
        checkpoint.read(path)


@pytest.mark.parametrize(
    "layout",
    [
        LAYOUT._replace(variables=LAYOUT.variables[:2]),
        LAYOUT._replace(variables=(Variable("conv/kernel", (3, 2), 0, 6), *LAYOUT.variables[1:])),
        LAYOUT._replace(variables=(Variable("dense/kernel", (2, 3), 0, 6), *LAYOUT.variables[1:])),
        LAYOUT._replace(state_variables=()),
    ],
    ids=["fewer", "shape", "name", "state"],
)
def test_one_of_another_model_is_refused(path, layout):
    with pytest.raises(ValueError, match="is of another model"):
        checkpoint.read_for(path, layout)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"meta": np.frombuffer(json.dumps({"schema": 99}).encode(), np.uint8)}, "schema 99"),
        ({"weights/a": np.zeros(2)}, "no array named meta"),
        ({"meta": np.array([{}], object)}, "damaged"),
    ],
    ids=["schema", "stranger", "pickle"],
)
def test_other_archives_are_refused(tmp_path, content, reason):
    np.savez(tmp_path / "c.npz", **content)
    with pytest.raises(ValueError, match=reason):
        checkpoint.read(str(tmp_path / "c.npz"))


class Trap:
    """Whoever unpickles it makes a folder."""

    def __init__(self, folder):
        self._folder = folder

    def __reduce__(self):
        return os.mkdir, (self._folder,)


def test_nothing_is_unpickled(tmp_path):
    trap = Trap(str(tmp_path / "sprung"))
    path = tmp_path / "c.npz"
    path.write_bytes(pickle.dumps(trap))
    with pytest.raises(ValueError, match="it is no npz archive"):
        checkpoint.read(str(path))
    for name in ("meta", "weights/a"):
        np.savez(path, **{"meta": np.zeros(2, np.uint8), name: np.array([trap], object)})
        with pytest.raises(ValueError, match="damaged"):
            checkpoint.read(str(path))
    assert os.listdir(str(tmp_path)) == ["c.npz"]


@pytest.mark.parametrize("kind", ["weights", "momentum", "state"])
def test_values_that_are_not_finite_do_not_replace_good_ones(path, kind):
    bad = filled(step=8)
    arrays_of(bad)[kind][-1] = np.nan
    with pytest.raises(ValueError, match=f"^{kind} of step 8 are not finite"):
        checkpoint.write(path, bad)
    assert checkpoint.peek(path)["step"] == 7


def test_a_failed_write_leaves_the_old_one_and_no_debris(path, tmp_path):
    with pytest.raises(OSError):
        checkpoint.write(str(tmp_path), filled(step=8))  # a folder cannot be replaced by a file
    checkpoint.write(path, filled(step=9))
    assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint.npz"]
    assert checkpoint.peek(path)["step"] == 9


def test_states_of_members_come_back_in_their_order(path):
    states = {"nano": (np.arange(3.0), np.array(4)), "nano/own": (np.ones(2),), "/timed nano": (np.zeros(1),)}
    checkpoint.write(path, filled()._replace(member_states=states))
    found = checkpoint.read(path).member_states
    assert list(found) == list(states)
    for name, own in states.items():
        for one, other in zip(found[name], own, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a checkpoint with all that there can be in one."""
    path = tmp_path_factory.mktemp("whole") / "c.npz"
    own = {"tx2": (np.ones(3, np.float32), np.ones((2, 2), np.int64))}
    checkpoint.write(str(path), filled()._replace(member_states=own))
    return path.read_bytes()


@MUTATIONS
@given(some.data())
def test_a_damaged_file_is_refused_or_read(tmp_path_factory, whole, data):
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(data.draw(damaged(whole)))
    for use in (checkpoint.read, checkpoint.peek):
        with contextlib.suppress(ValueError):
            use(str(path))


META = {
    "step": 7, "evaluations": [EVALUATION],
    "model": "cipher", "framework": "torch", "optimizer": "sgd", "strategy": "parameter-server", "batch": 8, "steps": 9,
    "input_shape": [28, 28, 1], "classes": 10, "image_dtype": "uint8", "schema": checkpoint.SCHEMA,
}  # fmt: skip


@MUTATIONS
@given(mutated(META))
def test_what_a_damaged_file_says_of_itself_is_refused_or_used(tmp_path_factory, meta):
    path = tmp_path_factory.getbasetemp() / "mutated.npz"
    np.savez(path, meta=np.frombuffer(written(meta).encode(), np.uint8))
    with contextlib.suppress(ValueError):
        found = checkpoint.peek(str(path))
        assert found["step"] >= 0
        assert last_evaluated(found) >= 0
        assert all(record(Evaluated, each).loss is not None for each in found["evaluations"])
        checkpoint.require_optimizer(found, "sgd")


@pytest.mark.parametrize(
    ("change", "told"),
    [({"step": "7"}, "step: expected a whole number"), ({"step": -1}, "step: expected a whole number from 0 on"),
     ({"evaluations": [1]}, "evaluations"), ({"evaluations": [{}]}, "missing 'step'")],
)  # fmt: skip
def test_what_it_says_of_itself_is_checked(tmp_path, change, told):
    np.savez(tmp_path / "c.npz", meta=np.frombuffer(json.dumps({**META, **change}).encode(), np.uint8))
    with pytest.raises(ValueError, match=told):
        checkpoint.peek(str(tmp_path / "c.npz"))
