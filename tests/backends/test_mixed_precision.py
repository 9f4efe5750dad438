"""In mixed precision torch computes in half the bits; weights and gradients stay float32."""

import numpy as np
import pytest

from backends import models
from backends.frameworks import base
from backends.frameworks.base import SGD, OptimizerSettings
from backends.protocol.orders import ReplicaSpec
from backends.training.workload import workload
from tests.backends.fakes import Softmax
from tests.backends.replicas import batch_for

torch = pytest.importorskip("torch")

from backends.pytorch.mixed_precision import LossScale  # noqa: E402

on_a_processor = pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU computes here")


def built(precision="fp32"):
    return workload(ReplicaSpec("torch", "cipher", precision=precision)).build().replica


def gradients(replica, batch, *args):
    replica.gradient(batch, *args)
    replica.fetch()
    return replica.gradients.copy()


@on_a_processor
def test_weights_and_gradients_stay_float32_and_gradients_are_near_those_in_full_precision():
    plain, mixed = built(), built("bf16")
    batch = batch_for(plain, 16)
    expected, found = gradients(plain, batch), gradients(mixed, batch)
    assert {array.dtype for array in (mixed.weights, mixed.gradients, mixed.state)} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(mixed.weights, plain.weights)
    assert not np.array_equal(found, expected)
    assert np.linalg.norm(found - expected) < 0.05 * np.linalg.norm(expected)


@on_a_processor
def test_the_model_itself_computes_in_bfloat16_and_evaluates_in_float32():
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
def test_the_loss_falls_in_bfloat16():
    replica = built("bf16")
    batch = batch_for(replica, 16)
    losses = []
    for _ in range(20):
        losses.append(replica.gradient(batch, 0.05, 0.01))
        replica.update(OptimizerSettings(0.05, 0.9, 0.01, SGD))
    assert losses[-1] < 0.8 * losses[0]


@on_a_processor
def test_float16_is_refused_where_torch_computes_on_the_processor():
    with pytest.raises(ValueError, match="^fp16 needs a GPU, and torch computes on the processor here; profile it"):
        built("fp16")


def test_other_frameworks_refuse_with_the_remedy():
    with pytest.raises(ValueError, match="^bf16 needs torch; .* or --precision fp32$"):
        Softmax().compute_in("bf16")


@pytest.mark.skipif(not hasattr(torch.amp, "GradScaler"), reason="older scalers need a GPU")
@on_a_processor
def test_scaled_gradients_are_the_gradients_and_one_that_overflows_is_computed_again(monkeypatch):
    plain, scaled = (base.framework("torch").build("cipher", seed=3) for _ in range(2))
    batch = batch_for(plain, 8)
    scale = LossScale(scaled._gradients)
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


@pytest.mark.skipif(not hasattr(torch.amp, "GradScaler"), reason="older scalers need a GPU")
def test_a_gradient_that_no_scale_makes_finite_stays_as_it_is():
    gradients = torch.zeros(3)
    scale, attempts = LossScale(gradients), 0
    while True:
        scale.scaled(torch.ones(()))
        gradients.fill_(float("nan"))
        attempts += 1
        if scale.unscale():
            break
    assert attempts <= 18 and torch.isnan(gradients).all()


@on_a_processor
def test_known_models_and_their_initial_weights_are_the_same_in_every_precision():
    description = models.described("cipher", None, None)
    np.testing.assert_array_equal(built("bf16").weights, models.initial_weights(description, 0))
