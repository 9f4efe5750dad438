"""An Apple GPU that is the processor in disguise, for no real one is to be had."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.installed import computes_with

pytestmark = computes_with("torch")
torch = pytest.importorskip("torch")

from backends import pytorch  # noqa: E402 - it imports torch
from backends.frameworks.device import DEVICE_VARIABLE  # noqa: E402
from backends.frameworks.optimizer import OptimizerSettings  # noqa: E402
from backends.jobs.job import Job  # noqa: E402
from backends.pytorch import accelerators, mixed_precision  # noqa: E402


@pytest.fixture
def metal(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is called of ``torch.mps``, in order."""
    called: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "synchronize", lambda: called.append("synchronize"))
    monkeypatch.setattr(torch.mps, "empty_cache", lambda: called.append("empty_cache"))
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: 5 << 20)
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 7 << 30, raising=False)
    monkeypatch.setattr(accelerators, "torch_device", lambda kind: torch.device("cpu"))
    monkeypatch.delenv(DEVICE_VARIABLE, raising=False)
    return called


class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)
        self.register_buffer("scale", torch.full((1,), 2.0, dtype=torch.float64))
        self.register_buffer("bound", torch.full((1,), torch.inf, dtype=torch.float64))

    def forward(self, x: Any) -> Any:
        return self.layer(x) * self.scale


def job() -> Job:
    torch.manual_seed(0)
    return Job(
        Net(),
        forward=lambda module, batch: (module(batch[0]), batch[1]),
        loss=lambda found, wanted: ((found - wanted) ** 2).mean(),
        metrics={},
    )


def trained(steps: int = 3) -> Any:
    replica = pytorch.replica(job())
    batch = (np.ones((4, 3), np.float32), np.ones((4, 1), np.float32))
    for _ in range(steps):
        replica.gradient(batch, rate=0.1)
        replica.update(OptimizerSettings())
    replica.fetch()
    return replica


def test_it_trains_as_the_processor_does(metal: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    on_metal = trained()
    assert (on_metal.accelerator, pytorch.accelerator()[0]) == ("mps", "mps")
    assert metal.count("synchronize") >= 6  # after each gradient and update
    assert on_metal.module.bound.dtype == torch.float32  # it has no float64
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    on_cpu = trained()
    assert on_cpu.accelerator == "cpu"
    np.testing.assert_array_equal(on_metal.weights, on_cpu.weights)


def test_a_batch_in_float64_becomes_float32_on_its_way() -> None:
    placed: list[Any] = []

    class Array(SimpleNamespace):
        def to(self, *arguments: Any) -> None:
            placed.append(arguments)

    mps, cpu = torch.device("mps"), torch.device("cpu")
    for kind, device in ((torch.float64, mps), (torch.int64, mps), (torch.float64, cpu)):
        accelerators.placed(Array(dtype=kind), device)
    assert placed == [(mps, torch.float32), (mps,), (cpu,)]


def test_its_memory_is_the_hosts_and_what_the_driver_gave(metal: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytorch.forget_peak_memory()
    assert metal == ["empty_cache"]
    assert pytorch.accelerator_memory() == (5 << 20, 7 << 30, True)
    monkeypatch.delattr(torch.mps, "recommended_max_memory")  # before torch 2.5
    assert pytorch.accelerator_memory() == (5 << 20, None, True)


@pytest.mark.usefixtures("metal")
def test_bytes_of_the_host_are_not_taken_for_its_own() -> None:
    made: list[Any] = []
    assert pytorch.live_bytes(lambda: made.append(torch.ones(1000))) is None
    assert len(made) == 1


@pytest.mark.usefixtures("metal")
def test_it_takes_no_part_in_torch_distributed() -> None:
    assert pytorch.collectives() == ()
    assert trained().ready_shares(lambda: None) is None
    with pytest.raises(ValueError, match='leave --engine out, or set device = "cpu" in the fleet file'):
        pytorch.require_process_group()


@pytest.mark.usefixtures("metal")
def test_bf16_is_tried_and_fp16_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixed_precision, "torch_device", lambda kind: torch.device("cpu"))
    with pytest.raises(ValueError, match="fp16 is not used on Apple GPUs, .* --precision fp32"):
        mixed_precision.require("fp16", "mps")
    monkeypatch.setattr(torch, "autocast", lambda kind, dtype: torch.amp.autocast_mode.autocast("cpu", dtype=dtype))
    mixed_precision.require("bf16", "mps")
    monkeypatch.setattr(torch, "autocast", lambda kind, dtype: torch.amp.autocast_mode.autocast("cpu", enabled=False))
    with pytest.raises(ValueError, match="bf16 is not used on Apple GPUs"):
        mixed_precision.require("bf16", "mps")


@pytest.mark.usefixtures("metal")
def test_the_fleet_file_may_ask_for_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "cpu")
    assert (pytorch.accelerator()[0], trained().accelerator) == ("cpu", "cpu")


@pytest.mark.usefixtures("metal")
def test_what_torch_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "cuda")
    refusal = 'torch has no cuda here; set `device` in the fleet file to "mps" or "cpu", or remove it'
    with pytest.raises(ValueError, match=refusal):
        pytorch.accelerator()
