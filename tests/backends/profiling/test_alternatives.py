"""Other ways to compute a step are measured where memory is scarce; the figures are torch's own."""

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from backends.profiling import alternatives
from backends.profiling.alternatives import InWork
from backends.profiling.step_memory import MemoryProbe
from planner.json_records import decode
from planner.predict.memory import StepHeadroom
from planner.predict.shortage import shortage
from profilers import bsd, mixed_precision
from profilers.records.steps import BatchMemory, ComputeSettings, StepMemory, StepProfile
from tests.backends.profiling.test_step_profile import Job, time_steps
from tests.installed import computes_with
from tests.quick import look_often
from tests.running import HANG_S, ROOT

pytestmark = computes_with("torch")
PLAIN = ComputeSettings()
#: Activations of 16 kB a sample in each layer, of which a few in a row are a block.
DEEP = """
import torch


def deep():
    layers = [torch.nn.Flatten(), torch.nn.Linear(48, 4096)]
    for _ in range(8):
        layers += [torch.nn.Tanh()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(4096, 10)), (4, 4, 3)


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = torch.nn.Linear(48, 10)

    def forward(self, images):
        return self.dense(images.flatten(1))


def plain():
    return Plain(), (4, 4, 3)


# It adds to the input of its blocks in place, so that these cannot be computed again.
class Residual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        block = torch.nn.Tanh(), torch.nn.Linear(48, 48), torch.nn.Tanh()
        self.block, self.head = torch.nn.Sequential(*block), torch.nn.Linear(48, 10)

    def forward(self, images):
        x = images.flatten(1).clone()
        x += self.block(x)
        return self.head(x)


def residual():
    return Residual(), (4, 4, 3)
"""


@pytest.fixture
def scarce(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The file of the models, on a device of which any batch takes most of the memory.

    It has bfloat16 as Apple's processors do, without a flag of Linux.
    """
    look_often(monkeypatch)
    monkeypatch.setattr(MemoryProbe, "is_scarce_at", lambda *_: True)
    monkeypatch.setattr(mixed_precision, "has_bf16_flags", lambda cpuinfo: False)
    monkeypatch.setattr(bsd, "host", lambda: bsd.Host(has_bf16=True))
    (tmp_path / "own.py").write_text(DEEP)
    return f"{tmp_path}/own.py"


def ways(found: Any) -> list[ComputeSettings]:
    return [each.compute for each in found.memory.alternatives]


def test_bf16_and_checkpointing_are_measured_at_the_sizes_of_the_batch(scarce: str) -> None:
    found = time_steps(Job(), f"{scarce}:deep", "torch", 256)
    assert ways(found) == [ComputeSettings(precision="bf16"), ComputeSettings(activation_checkpointing=True)]
    smallest = [peak.batch for peak in found.memory.batches[:2]]
    for each in found.memory.alternatives:
        assert (
            [timing.batch for timing in each.timings] == [peak.batch for peak in each.memory] == smallest == [64, 128]
        )
        assert all(len(timing.gradient_s.values) >= 2 for timing in each.timings)


def test_a_model_without_blocks_is_not_checkpointed(scarce: str) -> None:
    assert ways(time_steps(Job(), f"{scarce}:plain", "torch", 8)) == [ComputeSettings(precision="bf16")]


def test_a_way_in_which_the_model_cannot_compute_is_left_out_of_its_profile(scarce: str) -> None:
    found = time_steps(Job(), f"{scarce}:residual", "torch", 8)
    assert ways(found) == [ComputeSettings(precision="bf16")] and found.memory.batches


def test_a_way_that_runs_out_of_memory_is_left_out_and_the_next_one_is_measured() -> None:
    """A GPU's memory ends with a RuntimeError; after it, the replica computes as before."""
    replica, tried = MagicMock(), list[str]()
    replica.compute_in.side_effect = tried.append

    def gradient_at(size: int) -> Any:
        def compute() -> float:
            if tried[-1:] == ["bf16"]:
                raise RuntimeError("CUDA out of memory")
            return 0.1

        return compute

    def bytes_of(work: Any) -> InWork:
        work()
        return InWork(10, 50)

    found = alternatives.measure(replica, PLAIN, ["bf16"], [BatchMemory(4, 100)], gradient_at, bytes_of)
    assert [each.compute for each in found] == [ComputeSettings(activation_checkpointing=True)]
    assert tried == ["bf16", "fp32", "fp32"]


def test_nothing_else_is_computed_where_bytes_are_unknown() -> None:
    replica, unknown = MagicMock(), InWork(None, 50)
    found = alternatives.measure(replica, PLAIN, ["bf16"], [BatchMemory(4, 100)], MagicMock(), lambda work: unknown)
    assert found == () and not replica.mock_calls


def test_a_heap_takes_as_much_more_than_its_tensors_and_with_checkpointing_no_more() -> None:
    """A step took 60 bytes of a process of 40, for 50 bytes of tensors, which become 20."""
    told = iter([InWork(50, 40), InWork(20, 42), InWork(20, 45)])
    peaks = [BatchMemory(4, 100)]
    found = alternatives.measure(MagicMock(), PLAIN, ["bf16"], peaks, MagicMock(), lambda work: next(told))
    assert [each.memory for each in found] == [(BatchMemory(4, 42 + 24),), (BatchMemory(4, 45 + 20),)]


def test_of_a_gpu_the_tensors_are_all_there_is() -> None:
    told = iter([InWork(50, None), InWork(20, None), InWork(10, None)])
    peaks = [BatchMemory(4, 100, 70)]
    found = alternatives.measure(MagicMock(), PLAIN, ["bf16"], peaks, MagicMock(), lambda work: next(told))
    assert [each.memory for each in found] == [(BatchMemory(4, 100, 40),), (BatchMemory(4, 100, 30),)]


def test_nothing_is_measured_where_there_is_memory(scarce: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryProbe, "is_scarce_at", lambda *_: False)
    assert ways(time_steps(Job(), f"{scarce}:plain", "torch", 8)) == []


#: A process of its own: what is available to it, and how it computes; prints a profile, or a peak.
IN_A_PROCESS = """
import json, sys
from backends.agent.libc import keep_freed_memory
from backends.frameworks.base import framework
from backends.profiling import step_memory, step_profile
from backends.profiling.step_loop import StepLoop
from backends.protocol.member_specs import ReplicaSpec
from backends.protocol.orders import TimeSteps
from backends.training.workload import batches, workload
from profilers.records.device import HostMemory
from profilers.records.json_values import json_value
from profilers.records.steps import ComputeSettings
from tests.backends.profiling.test_step_profile import Job

model, available, compute = sys.argv[1], int(sys.argv[2]), ComputeSettings(**json.loads(sys.argv[3]))
spec = ReplicaSpec("torch", model, compute=compute)
keep_freed_memory()
if available:
    step_memory.device_facts.memory = lambda *_: HostMemory(2**40, available)
    found = step_profile.time_steps(Job(), TimeSteps(spec, 2048, "adaptive"))
else:
    built = workload(spec)
    replica = built.build().replica
    train, _ = step_profile._data(built, replica, 2048)
    loop = StepLoop(replica, batches(train, 2048, 0, compute.micro_batch))
    probe = step_memory.MemoryProbe.of_this_process(framework("torch"))
    probe.measure(2048, lambda: [loop.step() for _ in range(step_memory.STEPS)])
    found = probe.found()
print(json.dumps(json_value(found)))
"""


def in_a_process(kind: Any, model: str, available: int, compute: ComputeSettings = PLAIN) -> Any:
    command = [sys.executable, "-c", IN_A_PROCESS, model, str(available), json.dumps(compute._asdict())]
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=HANG_S, check=True)
    return decode(kind, json.loads(ended.stdout))


@pytest.mark.e2e
def test_offers_are_near_what_they_take(tmp_path: Path) -> None:
    """Of a batch that needs a little more than may be used.

    Heaps vary by a fifth, in one process of many by a third: a thread loads batches meanwhile.
    """
    (tmp_path / "own.py").write_text(DEEP.replace("range(8)", "range(16)"))
    model = f"{tmp_path}/own.py:deep"
    limited = in_a_process(StepProfile, model, 450_000_000)
    (measured,) = StepHeadroom(limited, 1e12).memories
    short = shortage(StepHeadroom(limited, measured.line.at(2048)), 2048)  # of which a tenth is left to others
    assert short is not None and short.offers
    for offer in short.offers:
        peaks = [in_a_process(StepMemory, model, 0, offer.compute).batches[0].host_bytes for _ in range(5)]
        assert 0.8 < offer.needed_bytes / statistics.median(peaks) < 1.25
