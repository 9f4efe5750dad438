"""In mixed precision a framework computes in half the bits; weights and gradients stay float32."""

import functools
import importlib

import numpy as np
import pytest

from backends.frameworks import base
from backends.protocol.member_specs import ReplicaSpec
from backends.training.workload import workload
from profilers.file_tree import FileTree
from profilers.mixed_precision import BF16, supported
from profilers.records.steps import ComputeSettings
from tests.backends.fakes import Softmax
from tests.backends.replicas import batch_for, by_every_framework
from tests.installed import computes_with

on_a_processor = pytest.mark.usefixtures("processor")
#: TensorFlow refuses bfloat16 where the processor has no instructions for it; torch is slow then.
has_bfloat16 = pytest.mark.skipif(BF16 not in supported(FileTree("/")), reason="no processor with bfloat16")


def marked(*marks):
    """All of these marks as one decorator."""
    return lambda test: functools.reduce(lambda marked_test, mark: mark(marked_test), marks, test)


with_torch, with_tensorflow = marked(*computes_with("torch")), marked(*computes_with("tensorflow"))


@pytest.fixture
def torch():
    """Imported by tests that need it, and not by every process that collects them."""
    return pytest.importorskip("torch")


@pytest.fixture
def processor(torch):
    if torch.cuda.is_available():
        pytest.skip("a GPU computes here")


@pytest.fixture
def scaler(torch):
    """What makes a LossScale."""
    if not hasattr(torch.amp, "GradScaler"):
        pytest.skip("older scalers need a GPU")
    return importlib.import_module("backends.pytorch.mixed_precision").LossScale


def built(precision="fp32", framework="torch"):
    return workload(ReplicaSpec(framework, "cipher", compute=ComputeSettings(0, precision))).build().replica


def gradients(replica, batch, *args):
    replica.gradient(batch, *args)
    replica.fetch()
    return replica.gradients.copy()


@on_a_processor
@has_bfloat16
@by_every_framework
def test_weights_and_gradients_stay_float32_and_gradients_are_near_those_in_full_precision(framework):
    plain, mixed = built(framework=framework), built("bf16", framework)
    batch = batch_for(plain, 16)
    expected, found = gradients(plain, batch), gradients(mixed, batch)
    assert {array.dtype for array in (mixed.weights, mixed.gradients, mixed.state)} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(mixed.weights, plain.weights)
    assert not np.array_equal(found, expected)
    assert np.linalg.norm(found - expected) < 0.05 * np.linalg.norm(expected)


@with_torch
@on_a_processor
def test_the_model_itself_computes_in_bfloat16_and_evaluates_in_float32(torch):
    replica, seen = built("bf16"), []
    for module in replica.module.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(lambda layer, given, output: seen.append(output.dtype))
    batch = batch_for(replica, 4)
    replica.gradient(batch)
    assert set(seen) == {torch.bfloat16}
    seen.clear()
    replica.evaluate(batch)
    assert set(seen) == {torch.float32}


@on_a_processor
@has_bfloat16
@by_every_framework
def test_evaluations_are_those_in_full_precision(framework):
    plain, mixed = built(framework=framework), built("bf16", framework)
    batch = batch_for(plain, 16)
    before = mixed.gradient(batch)
    assert mixed.evaluate(batch) == plain.evaluate(batch)
    assert mixed.gradient(batch) == before != plain.gradient(batch)


@with_torch
@on_a_processor
def test_float16_is_refused_where_torch_computes_on_the_processor():
    with pytest.raises(ValueError, match="^fp16 needs a GPU, and torch computes on the processor here; profile it"):
        built("fp16")


@with_tensorflow
def test_tensorflow_computes_in_no_float16():
    with pytest.raises(ValueError, match="^fp16 needs torch, which scales the loss; profile it with --framework torch"):
        built("fp16", "tensorflow")


@with_tensorflow
def test_a_tensorflow_that_rewrites_no_graph_is_refused(monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(tf.config.optimizer, "set_experimental_options", lambda options: None)
    with pytest.raises(ValueError, match="^TensorFlow .* does not compute in bf16 here; .* or --precision fp32$"):
        built("bf16", "tensorflow")


def test_other_frameworks_refuse_with_the_remedy():
    with pytest.raises(ValueError, match="^bf16 is not computed here; profile it with --precision fp32$"):
        Softmax().compute_in("bf16")


@with_torch
@on_a_processor
def test_scaled_gradients_are_the_gradients_and_one_that_overflows_is_computed_again(scaler, monkeypatch):
    plain, scaled = (base.framework("torch").build("cipher", seed=3) for _ in range(2))
    batch = batch_for(plain, 8)
    scale = scaler(scaled._gradients)
    monkeypatch.setattr(scaled, "_loss_scale", scale)
    plain.gradient(batch, 0.5, 0.1)
    plain.gradient(batch, 0.25, adds=True)
    computed, multiply = [], scale.scaled

    def overflowing(loss):
        computed.append(multiply(loss).item() / loss.item())
        return multiply(loss) * (np.inf if len(computed) == 1 else 1.0)

    monkeypatch.setattr(scale, "scaled", overflowing)
    scaled.gradient(batch, 0.5, 0.1)
    scaled.gradient(batch, 0.25, adds=True)
    assert computed[1:] == pytest.approx([computed[0] / 2] * 2)
    np.testing.assert_allclose(scaled.gradients, plain.gradients, rtol=1e-4, atol=1e-6)


@with_torch
def test_a_gradient_that_no_scale_makes_finite_stays_as_it_is(torch, scaler):
    gradients = torch.zeros(3)
    scale, attempts = scaler(gradients), 0
    while True:
        scale.scaled(torch.ones(()))
        gradients.fill_(float("nan"))
        attempts += 1
        if scale.unscale():
            break
    assert attempts <= 18 and torch.isnan(gradients).all()
