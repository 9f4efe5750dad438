import re

import numpy as np
import pytest

from backends.strategies.engine import Engine
from backends.strategies.strategy import Strategy
from planner.errors import PlanError
from planner.predict.request import RecommendRequest
from planner.predict.training import prepare
from profilers.records.steps import BatchMemory, ComputeSettings, StepMemory, StepProfile
from tests.planner import profiles
from tests.planner.predictions import inputs_of, training_of
from tests.planner.profiles import MBIT

TWO = {"a": profiles.device(), "b": profiles.device(profiles.step(0.2))}
THREE = {**TWO, "c": profiles.device()}


def test_what_was_measured_is_taken_as_it_is() -> None:
    found, training = prepare(profiles.profile(TWO), RecommendRequest())
    assert (found.names, found.frameworks, found.batches.usual) == (("a", "b"), ("torch", "torch"), 32)
    assert (training.settings.model, training.notes) == ("net", ())
    assert found.devices.gradient_s == pytest.approx([0.1, 0.2])
    assert found.devices.update_s == pytest.approx([0.01, 0.01])
    assert found.pairs.seconds(1_000_000) == pytest.approx(np.array([[0.001, 0.08], [0.08, 0.001]]))


def test_only_a_gradient_on_the_processor_competes_with_the_server() -> None:
    devices = {
        "gpu": profiles.device(),
        "cpu": profiles.device(profiles.step(accelerator="cpu", cpu_s_per_step=0.4)),
    }
    assert inputs_of(profiles.profile(devices)).devices.cpu_s == pytest.approx([0.0, 0.4])


def test_devices_timed_far_from_a_batch_size_are_left_out_and_if_all_are_it_is_to_be_profiled() -> None:
    far = "net was timed on it at batch sizes 16 to 32, too far from 4096"
    large = profiles.device(profiles.step(batch=4096))
    assert training_of(profiles.profile({**TWO, "c": large}), batch=4096).left_out == {"a": far, "b": far}
    remedy = "run `planner profile --model net --batch-size 4096`"
    with pytest.raises(PlanError, match=re.escape(f"no device can train net (a: {far}; b: {far}); {remedy}")):
        training_of(profiles.profile(TWO), batch=4096)
    job = profiles.device(profiles.step(job=True))
    with pytest.raises(PlanError, match="run `planner profile --job net --batch-size 4096`"):
        training_of(profiles.profile({"a": job}), batch=4096)


def test_what_was_not_profiled_is_a_what_if() -> None:
    made = profiles.profile(TWO)
    assert training_of(made).what_if == training_of(made, batch=32).what_if == ()
    assert training_of(made, batch=16, rates={"a": MBIT}).what_if == ("--rate a", "--batch-size 16")


def test_devices_that_lack_something_are_left_out_with_the_reason() -> None:
    devices = {
        **TWO,
        "dead": profiles.device()._replace(error="lost: connection reset", steps=()),
        "idle": profiles.device()._replace(steps=()),
        "odd": profiles.device(profiles.step(fingerprint="xyz")),
        "blank": profiles.device()._replace(facts=None),
    }
    found = training_of(profiles.profile(devices))
    assert inputs_of(profiles.profile(devices)).names == ("a", "b")
    assert found.left_out == {
        "dead": "lost: connection reset",
        "idle": "net was not timed completely on it with torch",
        "odd": "its net (xyz) is not the one most devices timed",
        "blank": "its facts were not read",
    }
    with pytest.raises(PlanError, match="--include dead: lost: connection reset"):
        training_of(profiles.profile(devices), include=["dead"])
    with pytest.raises(PlanError, match="--rate dead: lost: connection reset; profile it again"):
        training_of(profiles.profile(devices), rates={"dead": 10 * MBIT})


GB = 10**9


def of_memory(bytes_of_sample: int, **changes: object) -> StepProfile:
    """A timing with measured memory: 1 GB for any batch, and so much for each of its images."""
    sizes = tuple(BatchMemory(batch, GB + bytes_of_sample * batch) for batch in (16, 32))
    return profiles.step(memory=StepMemory(sizes), **changes)


def test_a_device_is_left_out_of_batches_that_do_not_fit_into_its_memory() -> None:
    """4.3 GB are available on either, a tenth of which is left to others."""
    fleet = profiles.profile({"a": profiles.device(of_memory(GB // 100)), "b": profiles.device(of_memory(GB // 10))})
    assert training_of(fleet, batch=28).left_out == {}
    assert training_of(fleet).left_out == {
        "b": "net: batch 32 needs 4.20 GB of its memory, and may use 3.87 GB; profile it with --micro-batch 16 "
        "(2.60 GB, 1.18 times the time), or take --batch-size 28"
    }
    assert [offer.compute.micro_batch for offer in training_of(fleet).offers["b"]] == [16]
    with pytest.raises(PlanError, match="--include b: net: batch 32 needs"):
        training_of(fleet, include=["b"])


@pytest.mark.parametrize(
    ("strategy", "engine", "largest"),
    [
        ("allreduce", "planner", 28),
        ("allreduce:optimizer=adam", "planner", 25),
        ("allreduce", "torch", 25),
        ("allreduce:optimizer=adam", "torch", 22),
        ("parameter-server:optimizer=adam", "planner", 28),
    ],
)
def test_the_largest_batch_that_fits_is_that_of_the_optimizer_and_the_engine(
    strategy: str, engine: str, largest: int
) -> None:
    """An array of the size of the model takes 0.3 GB, as much as three images."""
    tight = of_memory(GB // 10, parameter_bytes=3 * GB // 10, accelerator="cpu")
    fleet = profiles.profile({"a": profiles.device(), "b": profiles.device(tight)})
    asked, by = Strategy.from_text(strategy), Engine.from_text(engine)
    assert training_of(fleet, strategy=asked, batch=largest, engine=by).left_out == {}
    told = training_of(fleet, strategy=asked, batch=largest + 1, engine=by).left_out["b"]
    assert f"or take --batch-size {largest}" in told


def test_where_the_memory_of_all_is_too_small_it_is_not_profiled_again() -> None:
    fleet = profiles.profile({"b": profiles.device(of_memory(GB // 10))})
    with pytest.raises(PlanError, match=r"no device can train net \(b: net: batch 32 needs .*--batch-size 28\)$"):
        inputs_of(fleet)


def test_a_device_that_was_timed_at_a_smaller_batch_than_planned_is_left_out_of_the_planned_one() -> None:
    memory = StepMemory((BatchMemory(8, GB), BatchMemory(16, GB)), too_large=32)
    short = profiles.step(batch=16, requested_batch=32, memory=memory)
    fleet = profiles.profile({"a": profiles.device(), "b": profiles.device(short)})
    found = training_of(fleet)
    assert (inputs_of(fleet).batches.usual, found.what_if) == (32, ())
    assert "batch 32 ran out of memory when it was profiled" in found.left_out["b"]
    assert training_of(fleet, batch=16).left_out == {}


def test_missing_links_are_named() -> None:
    links = (*profiles.links("ab"), profiles.link("c", "c"))
    found, training = prepare(profiles.profile(THREE, links=links), RecommendRequest())
    assert training.notes == ("no cluster exchanges over links that were not measured: a-c, b-c",)
    assert not found.pairs.reachable[0, 2]
    assert found.pairs.reachable[0, 1]


def test_a_link_that_was_not_measured_is_estimated_from_those_of_both_ends_with_a_third() -> None:
    links = tuple(link for link in profiles.links(THREE) if {link.source, link.target} != {"a", "c"})
    found, whole = (inputs_of(profiles.profile(THREE, links=each)) for each in (links, profiles.links(THREE)))
    assert found.pairs.reachable.all()
    assert found.pairs.seconds(1_000_000) == pytest.approx(whole.pairs.seconds(1_000_000))
    assert found.errors.link[0, 2] > whole.errors.link[0, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "vgg"}, "model: vgg is not in the profile; profiled: net"),
        ({"framework": "jax"}, "framework: jax is not in the profile; profiled: torch"),
        ({"rates": {"x": 1.0}}, "--rate x: no such device; devices: a, b"),
        ({"include": ["x"]}, "--include x: no such device"),
    ],
)
def test_unknown_names_are_answered_with_the_known(options: dict, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        inputs_of(profiles.profile(TWO), **options)


def test_an_ambiguous_model_or_batch_must_be_chosen() -> None:
    both = profiles.device()._replace(steps=(profiles.step(), profiles.step(model="vgg")))
    with pytest.raises(PlanError, match="model: choose one with --model; profiled: net, vgg"):
        inputs_of(profiles.profile({"a": both}))
    with pytest.raises(PlanError, match="several batch sizes"):
        inputs_of(profiles.profile({"a": profiles.device(), "b": profiles.device(profiles.step(batch=64))}))
    with pytest.raises(PlanError, match="profiled: none, run `planner profile`"):
        inputs_of(profiles.profile({"a": profiles.device()._replace(steps=())}))


def test_a_job_is_planned_for_its_own_training_samples_unless_others_are_given() -> None:
    job = profiles.profile({"a": profiles.device(profiles.step(job=True, samples=3_200))})
    assert inputs_of(job).run.learning.training_samples == 3_200
    assert inputs_of(job, training_samples=500).run.learning.training_samples == 500
    assert inputs_of(profiles.profile(TWO)).run.learning.training_samples == 60_000


def test_each_device_computes_as_it_was_profiled_which_is_noted() -> None:
    small = profiles.step(micro_batch=8, activation_checkpointing=True)
    found = training_of(profiles.profile({"a": profiles.device(), "b": profiles.device(small)}))
    assert found.compute == (ComputeSettings(), ComputeSettings(8, "fp32", True))
    told = "b computes in parts of 8 samples at most and with activation checkpointing, as it was profiled"
    assert [note for note in found.details if "computes" in note] == [told]


def test_mixed_precision_is_noted() -> None:
    devices = {name: profiles.device(profiles.step(precision="bf16")) for name in ("a", "b")}
    found = training_of(profiles.profile(devices))
    assert found.settings.compute.precision == "bf16"
    assert "steps compute in bf16, as they were profiled; weights and gradients stay fp32" in found.details
    plain = training_of(profiles.profile({name: profiles.device() for name in ("a", "b")}))
    assert not any("steps compute in" in note for note in plain.details)
