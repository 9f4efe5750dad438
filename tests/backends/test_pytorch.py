"""PyTorch replicas: flat buffers, gradients, updates, users' own models."""

import functools
import itertools

import numpy as np
import pytest

from backends.frameworks.base import framework
from backends.frameworks.optimizer import MOMENTUM, SGD, GradientSettings, OptimizerSettings
from backends.jobs.job import ACCURACY
from backends.training.step import combine_parts
from tests.backends.fakes import split
from tests.backends.replicas import batch_for, close, learns
from tests.installed import computes_with

pytestmark = computes_with("torch")


@pytest.fixture
def pytorch(monkeypatch):
    """The backend in full precision; only a process that runs these tests imports it."""
    monkeypatch.setattr("torch.backends.cudnn.allow_tf32", False)
    return framework("torch")


def test_the_backends_of_torch_distributed_are_those_that_it_has(pytorch, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.distributed.is_nccl_available", lambda: True)
    assert pytorch.collectives() == ("gloo", "nccl", "fully_shard")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert pytorch.collectives() == ("gloo", "fully_shard")
    monkeypatch.delattr("torch.distributed.fsdp.FSDPModule.set_custom_reduce_scatter")
    assert pytorch.collectives() == ("gloo",)
    with pytest.raises(ValueError, match="has no FSDP2 whose exchange can be set, which newer ones have"):
        pytorch.require_sharding()
    monkeypatch.setattr("torch.distributed.is_available", lambda: False)
    assert pytorch.collectives() == ()


@pytest.mark.parametrize("name", ["cifar10", "resnet"])
def test_gradients_are_those_of_plain_autograd(pytorch, name, monkeypatch):
    import torch

    from tests.backends import plain_torch

    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)  # a GPU rounds what it multiplies
    replica = pytorch.build(name, seed=3)
    module = plain_torch.with_weights_of(replica, name)
    for seed in range(3):  # again and again, because autograd must go on adding into the same buffers
        images, labels = batch_for(replica, seed=seed)
        module.zero_grad()
        scores = module(plain_torch.as_input(images))
        expected = torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels))
        expected.backward()
        loss = replica.gradient((images, labels))
        replica.fetch()
        assert loss == pytest.approx(expected.item(), rel=1e-4)
        plain = plain_torch.flat(parameter.grad for parameter in module.parameters())
        close(replica.gradients, plain, within=1e-3 if replica.accelerator == "cpu" else 1e-2)
    running = [buffer for buffer in module.buffers() if buffer.is_floating_point()]
    if running:
        close(replica.state, plain_torch.flat(running))
    else:
        assert replica.state.shape == (0,)


def test_later_layers_have_their_gradients_before_earlier_ones_and_no_hook_is_left(pytorch):
    replica = pytorch.build("cipher", seed=3)
    batch = batch_for(replica)
    shares = replica.ready_shares(lambda: replica.gradient(batch))
    by_layer = {}
    for variable, share in zip(replica.variables, shares, strict=True):
        by_layer.setdefault(variable.name.split(".")[0], []).append(share)
    layers = list(by_layer.values())
    assert len(layers) > 2 and min(shares) > 0 and max(shares) <= 1
    assert all(max(later) <= min(earlier) for earlier, later in itertools.pairwise(layers))
    assert not any(parameter._backward_hooks for parameter in replica.module.parameters())


def drawn(replica, batch):
    """Draws the same batch again and again."""
    return lambda: functools.partial(combine_parts, replica, batch, GradientSettings())


def test_what_a_group_adds_to_a_gradient_is_measured_and_the_replica_computes_alone_afterwards(pytorch):
    from torch import distributed

    replica, other = (pytorch.build("cipher", seed=3) for _ in range(2))
    batch, alone = batch_for(replica), replica.training_loss
    if replica.accelerator == "cpu":
        assert pytorch.group_cpu_s(replica, drawn(replica, batch)) >= 0
    assert replica.training_loss == alone and not distributed.is_initialized()
    replica.gradient(batch)
    other.gradient(batch)
    np.testing.assert_array_equal(replica.gradients, other.gradients)


def test_of_a_batch_in_parts_a_group_exchanges_once(pytorch, monkeypatch):
    from backends.pytorch import group_cpu_time
    from backends.pytorch.bucket_reduction import BucketReduction

    reduced = []
    done = BucketReduction.backward_done
    monkeypatch.setattr(BucketReduction, "backward_done", lambda self: (reduced.append(1), done(self))[1])
    replica = pytorch.build("cipher")
    group_cpu_time.own_cpu_s(replica, drawn(replica, split(batch_for(replica), 2)))
    pairs = len(reduced) - group_cpu_time.WARM_PAIRS
    assert group_cpu_time.FEWEST_PAIRS <= pairs <= group_cpu_time.MOST_PAIRS


def test_a_device_on_which_gloo_does_not_start_tells_nothing_of_it(pytorch, monkeypatch):
    def fails(*args, **options):
        raise RuntimeError("cannot resolve the host name")

    monkeypatch.setattr("torch.distributed.init_process_group", fails)
    replica = pytorch.build("cipher")
    assert pytorch.group_cpu_s(replica, drawn(replica, batch_for(replica))) is None


def test_of_a_batch_in_parts_the_last_one_counts_and_an_unused_parameter_is_ready_at_the_end(pytorch):
    import torch

    from backends.pytorch.ready_shares import ready_shares

    used, unused = (torch.nn.Parameter(torch.ones(10)) for _ in range(2))

    def busy():
        for _ in range(2):
            (used * torch.ones(10)).sum().backward()
            sum(range(200_000))

    shares = ready_shares([used, unused], busy, on_gpu=False)
    assert 0.3 < shares[0] < 1 and shares[1] == 1


@pytest.mark.parametrize(
    "optimizer", [OptimizerSettings(0.05, 0.0), OptimizerSettings(0.05, 0.9), OptimizerSettings(0.02, 0.8, 1e-2)]
)
def test_the_native_update_is_torchs_sgd(pytorch, optimizer):
    import torch

    from tests.backends import plain_torch

    replica = pytorch.build("resnet", seed=3)
    module = plain_torch.with_weights_of(replica, "resnet")
    sgd = torch.optim.SGD(module.parameters(), optimizer.rate, optimizer.momentum, weight_decay=optimizer.weight_decay)
    for seed in range(3):
        images, labels = batch_for(replica, seed=seed)
        replica.gradient((images, labels))
        replica.fetch()
        for parameter, place in zip(module.parameters(), replica.variables, strict=True):
            values = replica.gradients[place.start : place.start + place.size].reshape(place.shape)
            parameter.grad = torch.from_numpy(values.copy())
        sgd.step()
        replica.gradient((images, labels), optimizer.rate, optimizer.weight_decay)
        replica.update(optimizer)
        replica.fetch()
        close(replica.weights, plain_torch.flat(module.parameters()))
    if optimizer.momentum:
        buffers = [sgd.state[parameter]["momentum_buffer"] for parameter in module.parameters()]
        close(replica.slots(SGD)[MOMENTUM] / optimizer.rate, plain_torch.flat(buffers))


def test_on_a_cpu_buffers_are_the_tensors_and_stay_so(pytorch):
    if pytorch.accelerator()[0] != "cpu":
        pytest.skip("views of host memory exist on a CPU only")
    replica = pytorch.build("resnet", seed=0)
    parameters = list(replica.module.parameters())
    images, labels = batch_for(replica)
    before = [p.grad.data_ptr() for p in parameters]
    for _ in range(2):
        replica.gradient((images, labels), rate=0.01)
        replica.update(OptimizerSettings(momentum=0.9))
    assert [p.grad.data_ptr() for p in parameters] == before
    assert parameters[0].data_ptr() == replica.weights.ctypes.data
    assert before[0] == replica.gradients.ctypes.data
    last = replica.variables[-1]
    assert parameters[-1].data_ptr() == replica.weights.ctypes.data + 4 * last.start
    replica.weights[last.start] = 42
    assert parameters[-1].view(-1)[0] == 42
    replica.state[:] = 7
    assert all((b == 7).all() for b in replica.module.buffers() if b.is_floating_point())


def test_evaluation_is_the_mean_over_all_images_and_changes_nothing(pytorch):
    import torch

    from tests.backends import plain_torch

    replica = pytorch.build("resnet", seed=3)
    module = plain_torch.with_weights_of(replica, "resnet")
    images, labels = batch_for(replica, 40)
    state = replica.state.copy()
    loss, metrics = replica.evaluate((images, labels))
    with torch.no_grad():
        scores = module.eval()(plain_torch.as_input(images))
    expected = torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels))
    assert loss == pytest.approx(expected.item(), rel=1e-4)
    assert metrics == {ACCURACY: pytest.approx((scores.argmax(1).numpy() == labels).mean())}
    np.testing.assert_array_equal(replica.state, state)
    assert replica.module.training


OWN = """
import torch
class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(12, 12)
        self.second = torch.nn.Linear(12, 12)
        self.second.weight = self.first.weight
        self.second.bias.requires_grad_(False)
        self.last = torch.nn.Linear(12, 5).double()
        self.register_buffer("steps", torch.zeros(3))
    def forward(self, x):
        return self.last(self.second(self.first(x.flatten(1))).to(self.last.weight.dtype))
def build(): return Tied(), (2, 2, 3)
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "net.py").write_text(OWN)
    return f"{tmp_path}/net.py"


def test_a_users_model_is_built_with_ties_frozen_parameters_and_buffers(pytorch, own):
    replica = pytorch.build(f"{own}:build", (2, 2, 3), 5, seed=1)
    assert (replica.input_shape, replica.classes) == ((2, 2, 3), 5)
    assert [place.name for place in replica.variables] == ["first.weight", "first.bias", "last.weight", "last.bias"]
    assert [place.name for place in replica.state_variables] == ["second.bias", "steps"]
    assert learns(replica)
    np.testing.assert_array_equal(
        pytorch.build(f"{own}:build", seed=1).weights, pytorch.build(f"{own}:build", seed=1).weights
    )


HOOKED = """
import torch
def build():
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 5))
    module[1].weight.register_hook(lambda gradient: gradient.clamp(-1e-3, 1e-3))
    module.register_buffer("mask", torch.tensor([0.0, float("-inf")]))
    module.register_buffer("mean", torch.zeros(2))
    return module, (2, 2, 3)
"""


@pytest.fixture
def hooked(pytorch, tmp_path):
    (tmp_path / "net.py").write_text(HOOKED)
    return pytorch.build(f"{tmp_path}/net.py:build", (2, 2, 3), 5, seed=1)


def test_a_users_hook_sees_the_gradients_themselves_whatever_the_rate(hooked):
    images, labels = batch_for(hooked, 32)
    hooked.gradient((images, labels))
    hooked.fetch()
    plain = hooked.gradients.copy()
    assert np.abs(plain[:60]).max() == pytest.approx(1e-3)
    hooked.gradient((images, labels), rate=1e-4)
    hooked.fetch()
    np.testing.assert_allclose(hooked.gradients, 1e-4 * plain, rtol=1e-5)


def test_a_constant_that_holds_infinities_is_no_state(hooked):
    assert [place.name for place in hooked.state_variables] == ["mean"]
