"""Adam and AdamW are torch's, step by step, and their state is all that a later step needs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import ADAM, ADAMW, FIRST_MOMENT, SECOND_MOMENT, UPDATES, OptimizerSettings
from backends.optimizers import adam
from backends.optimizers.adam import Adam

KINDS = [ADAM, ADAMW]


def made(size):
    return Adam((Variable("w", (size,), 0, size),))


def flat(*values):
    return np.array(values, np.float32)


def gradients_of(seed, steps, size, smallest=1e-6):
    """Of very different sizes, so that the second moments differ and epsilon counts for some."""
    random = np.random.default_rng(seed)
    scale = 10.0 ** random.uniform(np.log10(smallest), 2.5, size)
    return (random.choice([-1, 1], (steps, size)) * random.uniform(0.5, 1.5, (steps, size)) * scale).astype(np.float32)


def test_a_first_step_worked_out_by_hand():
    # m = 0.1 g and v = 0.001 g^2 are without their bias g and g^2, so that w moves by rate sign(g).
    optimizer, weights = made(3), flat(1, 1, 1)
    optimizer.apply(weights, flat(4, -0.5, 0), OptimizerSettings(0.01, kind=ADAM))
    np.testing.assert_allclose(weights, [0.99, 1.01, 1], rtol=1e-6)
    np.testing.assert_allclose(optimizer.slots[FIRST_MOMENT], [0.4, -0.05, 0], rtol=1e-6)
    np.testing.assert_allclose(optimizer.slots[SECOND_MOMENT], [0.016, 0.00025, 0], rtol=1e-5)
    assert optimizer.slots[UPDATES] == [1]


def test_weight_decay_is_part_of_the_gradient_of_adam_and_apart_from_it_in_adamw():
    with_decay, decoupled = flat(2), flat(2)
    made(1).apply(with_decay, flat(0), OptimizerSettings(0.1, weight_decay=0.5, kind=ADAM))
    made(1).apply(decoupled, flat(0), OptimizerSettings(0.1, weight_decay=0.5, kind=ADAMW))
    np.testing.assert_allclose(with_decay, [2 - 0.1], rtol=1e-6)
    np.testing.assert_allclose(decoupled, [2 - 0.1 * 0.5 * 2], rtol=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    kind=some.sampled_from(KINDS),
    seed=some.integers(0, 2**20),
    rate=some.floats(1e-4, 0.1),
    weight_decay=some.sampled_from([0.0, 0.01, 0.1]),
    beta1=some.floats(0.0, 0.99),
    beta2=some.floats(0.5, 0.9999),
    epsilon=some.sampled_from([1e-8, 1e-6, 1e-3]),
)
def test_many_steps_come_to_the_same_as_torchs(kind, seed, rate, weight_decay, beta1, beta2, epsilon):
    import torch

    size, steps = 17, 60
    start = np.random.default_rng(seed).uniform(-1, 1, size).astype(np.float32)
    # Where decay cancels a gradient, rounding decides the direction: weights stay below 7 here.
    smallest = 3.0 if kind == ADAM and weight_decay else 1e-6
    weights, optimizer = start.copy(), made(size)
    parameter = torch.nn.Parameter(torch.from_numpy(start.copy()))
    choose = {ADAM: torch.optim.Adam, ADAMW: torch.optim.AdamW}[kind]
    theirs = choose([parameter], lr=rate, betas=(beta1, beta2), eps=epsilon, weight_decay=weight_decay)
    for gradient in gradients_of(seed, steps, size, smallest):
        optimizer.apply(
            weights,
            gradient.copy(),
            OptimizerSettings(rate, 0.0, weight_decay, kind, beta1, beta2, epsilon),
        )
        parameter.grad = torch.from_numpy(gradient)
        theirs.step()
    np.testing.assert_allclose(weights, parameter.detach().numpy(), rtol=1e-3, atol=2e-4 * rate * steps)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_change_nothing(kind, monkeypatch):
    optimizer = OptimizerSettings(0.01, weight_decay=0.1, kind=kind)
    results = []
    for block in (1 << 16, 7):
        monkeypatch.setattr(adam, "BLOCK", block)
        weights, updates = np.ones(40, np.float32), made(40)
        for gradient in gradients_of(1, 5, 40):
            updates.apply(weights, gradient, optimizer)
        results.append(weights)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("kind", KINDS)
def test_with_its_slots_another_goes_on_as_it_would_have(kind):
    optimizer = OptimizerSettings(0.01, weight_decay=0.1, kind=kind)
    first, whole = made(5), np.ones(5, np.float32)
    given_gradients = gradients_of(2, 20, 5)
    for gradient in given_gradients[:8].copy():
        first.apply(whole, gradient, optimizer)
    rest, second = whole.copy(), made(5)
    second.slots = {name: values.copy() for name, values in first.slots.items()}
    for gradient in given_gradients[8:]:
        first.apply(whole, gradient.copy(), optimizer)
        second.apply(rest, gradient.copy(), optimizer)
    np.testing.assert_array_equal(rest, whole)
