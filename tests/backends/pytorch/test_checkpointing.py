"""With activation checkpointing a model learns the same, and its blocks compute twice."""

import copy
import importlib
from types import SimpleNamespace

import numpy as np
import pytest

from backends.data.micro_batches import BatchPart, SplitBatch
from backends.frameworks import base
from backends.frameworks.optimizer import GradientSettings
from backends.jobs.failure import JobFailure
from backends.jobs.job import Job
from backends.protocol.member_specs import ReplicaSpec
from backends.training.step import gradient
from backends.training.workload import workload
from profilers.records.steps import ComputeSettings
from tests.backends.fakes import Softmax
from tests.backends.replicas import batch_for
from tests.installed import computes_with

pytestmark = computes_with("torch")
#: Of zoo models: single layers in a row, residual blocks with batch normalisation, dropout.
MODELS = ["alexnet", "mobilenet", "nin", "resnet", "squeezenet"]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(params=["usual", "of torch 1.10"])
def kind(request, torch, monkeypatch):
    """Either kind of torch.utils.checkpoint."""
    module = importlib.import_module("backends.pytorch.checkpointing")
    if request.param != "usual":
        older = torch.utils.checkpoint.checkpoint
        monkeypatch.setattr(module, "_HAS_OTHER_KIND", False)
        monkeypatch.setattr(module, "checkpoint", lambda *given: older(*given, use_reentrant=True))


def replica_of(model, blocks=(), checkpointing=True):
    """A replica of a copy of a model of (samples, features) that learns to give zeros."""
    torch = importlib.import_module("torch")
    mine = copy.deepcopy(model)
    same = dict(zip(model.modules(), mine.modules(), strict=True))
    job = Job(
        mine, lambda module, batch: (module(batch), batch), lambda outputs, _: (outputs**2).mean(), {},
        blocks=[same[block] for block in blocks],
    )  # fmt: skip
    made = base.framework("torch").replica(job)
    if checkpointing:
        made.checkpoint_activations()
    torch.manual_seed(7)
    return made


def learnt(replica, batch, steps=2):
    """Gradients and state after some gradients; the random numbers are the same for all."""
    found = []
    for _ in range(steps):
        replica.gradient(batch)
        found.append(replica.gradients.copy())
    return [*found, replica.state.copy()]


def require_equal(model, inputs, blocks=()):
    """Counts how often each block was called in a step of the checkpointed model."""
    plain, other = replica_of(model, checkpointing=False), replica_of(model, blocks)
    torch = importlib.import_module("torch")
    torch.manual_seed(3)
    expected = learnt(plain, inputs)
    torch.manual_seed(3)
    for got, wanted in zip(learnt(other, inputs), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-7)


def calls(replica, kind_of_module, work):
    """How often the modules of a class compute in a piece of work."""
    count = [0]
    for module in replica.module.modules():
        if isinstance(module, kind_of_module):
            module.register_forward_pre_hook(lambda *_: count.__setitem__(0, count[0] + 1))
    work()
    return count[0]


@pytest.mark.parametrize("model", MODELS)
def test_known_models_learn_the_same_also_with_dropout_and_running_statistics(torch, model, kind):
    def built(checkpointing):
        settings = ComputeSettings(activation_checkpointing=checkpointing)
        return workload(ReplicaSpec("torch", model, (32, 32, 3), 10, compute=settings)).build().replica

    plain, other = built(False), built(True)
    found = []
    for replica in (plain, other):
        torch.manual_seed(3)
        found.append(learnt(replica, batch_for(replica, 4)))
    for wanted, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-7)
    counters = [
        [value for name, value in each.module.named_buffers() if name.endswith("num_batches_tracked")]
        for each in (plain, other)
    ]
    assert counters[0] == counters[1]
    assert calls(other, torch.nn.Conv2d, lambda: other.gradient(batch_for(other, 4))) == 2 * calls(
        plain, torch.nn.Conv2d, lambda: plain.gradient(batch_for(plain, 4))
    )


def test_the_layers_of_a_transformer_are_its_blocks(torch, kind):
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.3, batch_first=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(8, 1))
    require_equal(model, torch.randn(5, 6, 4))
    made = replica_of(model)
    assert calls(made, nn.TransformerEncoderLayer, lambda: made.gradient(torch.randn(5, 6, 4))) == 3
    attention = calls(made, nn.MultiheadAttention, lambda: made.gradient(torch.randn(5, 6, 4)))
    assert attention == 6  # the block is called once, and what is in it twice


def test_blocks_that_a_job_names_are_those_that_are_computed_again(torch):
    nn = torch.nn

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.head = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)

        def forward(self, x):
            return self.head(self.second(self.first(x).tanh()).relu())

    model = Branches()
    with pytest.raises(ValueError, match="found no blocks in the model.*name them in the job"):
        replica_of(model)
    require_equal(model, torch.randn(5, 4), blocks=[model.second])


def test_a_statistic_that_outputs_depend_on_is_that_of_the_first_call(torch, kind):
    nn = torch.nn

    class Running(nn.Module):
        """Divides by the largest value that it has seen; its buffer is replaced in every call."""

        def __init__(self):
            super().__init__()
            self.scale = nn.Linear(4, 4)
            self.register_buffer("largest", torch.ones(()))

        def forward(self, x):
            self.largest = 0.5 * self.largest + x.detach().abs().max()
            return self.scale(x).tanh() / self.largest

    require_equal(nn.Sequential(Running(), Running(), nn.Linear(4, 1)), torch.randn(5, 4))


def test_a_block_whose_input_is_changed_in_place_is_refused(torch):
    nn = torch.nn

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(nn.Sequential(nn.Dropout(0.0), nn.Linear(4, 4), nn.Tanh()) for _ in range(3))

        def forward(self, x):
            x = x.clone()
            for block in self.blocks:
                x += block(x)
            return x

    with pytest.raises(JobFailure, match="cannot compute .* again: its input was changed in place; let the model"):
        replica_of(Residual()).gradient(torch.randn(5, 4))


def test_a_tensor_within_what_a_block_is_given_that_is_changed_in_place_is_refused(torch):
    nn = torch.nn

    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense = nn.Linear(4, 4)

        def forward(self, x, shift):
            return self.dense(x + shift["by"]).tanh()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Shifted() for _ in range(2))

        def forward(self, x):
            shift = {"by": torch.zeros(4)}
            for block in self.blocks:
                x = block(x, shift=shift)
                shift["by"].add_(1.0)
            return x

    with pytest.raises(JobFailure, match="cannot compute Shifted again: its input was changed in place; let the model"):
        replica_of(Model()).gradient(torch.randn(5, 4))


def test_a_layer_that_is_several_times_in_a_sequence_computes_as_often(torch, kind):
    nn = torch.nn
    activation, block = nn.Tanh(), nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    require_equal(nn.Sequential(nn.Linear(4, 8), activation, nn.Linear(8, 8), activation), torch.randn(5, 4))
    require_equal(nn.Sequential(nn.Linear(4, 8), block, block, block, nn.Linear(8, 1)), torch.randn(5, 4))


def test_a_block_that_is_several_times_in_a_list_is_computed_again_once_each_time(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense = nn.Linear(4, 4)

        def forward(self, x):
            return self.dense(x).tanh()

    class Repeated(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block()] * 4)

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    made = replica_of(Repeated())
    assert calls(made, nn.Linear, lambda: made.gradient(torch.randn(5, 4))) == 8


def test_blocks_that_are_never_called_are_refused(torch):
    """They stay as they were, and nothing is computed again."""
    nn = torch.nn

    class Unrolled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    with pytest.raises(JobFailure, match="found blocks in the model, of which its forward calls none as a module"):
        replica_of(Unrolled()).gradient(torch.randn(5, 4))


def test_blocks_whose_parameters_are_all_frozen_come_before_those_that_learn(torch, kind):
    nn = torch.nn
    model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3)], nn.Linear(4, 1))
    for each in (model[0], model[1]):
        each.requires_grad_(False)
    require_equal(model, torch.randn(5, 4))


CALLS = {
    "by name": lambda block, x: block(x=x, pair=(x.sin(), [x.cos()])),
    "nested": lambda block, x: block(x, (x.sin(), [x.cos()])),
}


@pytest.mark.parametrize("called", CALLS.values(), ids=CALLS)
def test_tensors_by_name_and_within_tuples_have_their_gradients(torch, kind, called):
    nn = torch.nn

    class Mixing(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense = nn.Linear(4, 4)

        def forward(self, x, pair):
            first, (second,) = pair
            return {"mixed": (self.dense(x) * first + second, None)}

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks, self.head = nn.ModuleList(Mixing() for _ in range(3)), nn.Linear(4, 1)

        def forward(self, x):
            for block in self.blocks:
                x, _ = called(block, x)["mixed"]
            return self.head(x)

    require_equal(Model(), torch.randn(5, 4))


@pytest.mark.parametrize("kind", ["of torch 1.10"], indirect=True)
def test_a_block_that_gives_an_object_whose_gradients_would_be_lost_is_refused(torch, kind):
    nn = torch.nn

    class Holding(nn.Linear):
        def forward(self, x):
            return SimpleNamespace(found=super().forward(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Holding(4, 1)

        def forward(self, x):
            return self.block(x).found

    model = Model()
    with pytest.raises(JobFailure, match="cannot follow gradients through what Holding gives"):
        replica_of(model, blocks=[model.block]).gradient(torch.randn(5, 4))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_it_goes_with_micro_batches_and_mixed_precision(torch, precision):
    if torch.cuda.is_available():
        pytest.skip("a GPU computes here")
    nn = torch.nn
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Dropout(0.2), nn.Linear(8, 1))
    found = []
    for checkpointing in (False, True):
        replica = replica_of(model, checkpointing=checkpointing)
        if precision != "fp32":
            replica.compute_in(precision)
        parts = torch.linspace(-1, 1, 24).view(2, 3, 4)
        torch.manual_seed(3)
        gradient(replica, SplitBatch(tuple(BatchPart(3, part) for part in parts)), GradientSettings())
        found.append(replica.gradients.copy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-7)
    assert np.abs(found[0]).max() > 0


def test_an_evaluation_computes_once(torch):
    made = replica_of(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)))
    assert calls(made, torch.nn.Tanh, lambda: made.evaluate(torch.randn(5, 4))) == 1


def test_other_frameworks_refuse_with_the_remedy():
    with pytest.raises(ValueError, match="^--activation-checkpointing needs torch; profile it with --framework torch"):
        Softmax().checkpoint_activations()
