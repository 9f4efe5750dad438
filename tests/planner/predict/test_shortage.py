"""What would fit: 100 MB for any batch and 2 MB for each sample, of 200 MB, unless told."""

import pytest

from planner.predict.memory import ACCELERATOR, Further, StepHeadroom
from planner.predict.shortage import StepOffer, shortage
from profilers.records.steps import Alternative, BatchMemory, BatchTiming, ComputeSettings, StepMemory, StepProfile
from tests.planner import profiles
from tests.planner.predict.test_memory import MB, memory

BF16, CHECKPOINTED = ComputeSettings(precision="bf16"), ComputeSettings(activation_checkpointing=True)


def timed(*alternatives: Alternative, **changes: object) -> StepProfile:
    """Batch 8 takes 80 ms, and batch 4 40 ms; an update takes 10 ms."""
    found = memory(4, 8, alternatives=alternatives)
    return profiles.step(0.08, batch=8, half_batch_s=profiles.seconds(0.04), memory=found, **changes)


def other(compute: ComputeSettings, sample_s: float, sample_bytes: int) -> Alternative:
    """100 MB for any batch; seconds and bytes of each sample."""
    return Alternative(
        compute,
        tuple(BatchTiming(size, profiles.seconds(sample_s * size)) for size in (4, 8)),
        tuple(BatchMemory(size, 100 * MB + sample_bytes * size) for size in (4, 8)),
    )


def headroom(step: StepProfile, available: float = 200 * MB, **further: float) -> StepHeadroom:
    return StepHeadroom(step, available, Further(**further))


def test_a_shortage_names_the_memory_what_it_takes_and_what_would_fit() -> None:
    found = headroom(timed())
    assert shortage(found, 40) is None
    short = shortage(found, 64)
    assert short is not None and short.text == (
        "batch 64 needs 228 MB of its memory, and may use 180 MB; profile it with --micro-batch 32 (164 MB, 1.00 times "
        "the time), or take --batch-size 40"
    )


def test_the_whole_batch_in_another_way_and_parts_are_offered_the_fastest_first() -> None:
    made = timed(other(BF16, 0.006, MB), other(CHECKPOINTED, 0.013, MB // 2))
    short = shortage(headroom(made), 64)
    assert short is not None
    assert [each.changes for each in short.offers] == [
        ("--precision bf16",), ("--micro-batch 32",), ("--activation-checkpointing",)
    ]  # fmt: skip
    assert [round(each.needed_bytes / MB) for each in short.offers] == [164, 164, 132]
    assert [each.time_factor for each in short.offers] == pytest.approx([(0.384 + 0.01) / 0.65, 1.0, 0.842 / 0.65])
    assert short.offers[1].compute == ComputeSettings(micro_batch=32)


def test_a_way_that_fits_in_parts_only_is_offered_where_it_is_faster_than_plain_parts() -> None:
    made = timed(other(BF16, 0.006, MB), other(CHECKPOINTED, 0.013, MB // 2))
    short = shortage(headroom(made), 256)
    assert short is not None
    assert [each.changes for each in short.offers] == [("--precision bf16", "--micro-batch 64"), ("--micro-batch 37",)]


def test_parts_take_longer_where_a_small_batch_is_slow() -> None:
    """Half a batch takes six tenths of the time of a whole one, so that 64 samples take 580 ms."""
    made = profiles.step(0.1, batch=32, memory=memory(16, 32))
    short = shortage(headroom(made), 64)
    assert short is not None and short.offers[0].changes == ("--micro-batch 32",)
    assert short.offers[0].time_factor == pytest.approx((0.2 + 0.01) / (0.1 + 0.08 + 0.01))


def test_what_a_run_keeps_besides_counts_for_offers_too() -> None:
    short = shortage(headroom(timed(), host=40 * MB), 64)
    assert short is not None and short.offers[0].changes == ("--micro-batch 16",)
    assert short.offers[0].needed_bytes == 172 * MB


def test_a_shortage_names_the_scarcest_memory() -> None:
    gpu = memory(4, 8, gpu=True, accelerator_available_bytes=100 * MB)
    short = shortage(StepHeadroom(profiles.step(memory=gpu), 220 * MB), 64)
    assert short is not None and (short.name, short.largest) == (ACCELERATOR, 10)


def test_a_shortage_that_was_seen_has_no_bytes() -> None:
    short = shortage(headroom(profiles.step(memory=memory(4, too_large=16))), 16)
    assert short is not None and short.text == ("batch 16 ran out of memory when it was profiled; take --batch-size 15")


def test_a_batch_in_parts_takes_what_its_parts_take() -> None:
    """Batches 4 and 8 were measured in parts of 4: 100 MB and 116 MB at most."""
    in_parts = timed(micro_batch=4)
    assert shortage(headroom(in_parts, 130 * MB), 64) is None
    short = shortage(headroom(in_parts, 128 * MB), 64)
    assert short is not None and (short.needed_bytes, short.largest) == (116 * MB, 0)
    assert "; no batch fits: profile it with a --micro-batch below 4, or " in short.text


def test_smaller_parts_are_offered_where_parts_do_not_fit() -> None:
    """Batches of 4, 8 and 16 in parts of 8: a sample takes 2 MB of 100, and 110 may be used."""
    measured = tuple(BatchMemory(size, (100 + 2 * min(size, 8)) * MB) for size in (4, 8, 16))
    peaks = memory(4, 8)._replace(batches=measured)
    made = profiles.step(0.08, batch=8, half_batch_s=profiles.seconds(0.04), memory=peaks, micro_batch=8)
    short = shortage(headroom(made, 110 * MB / 0.9), 64)
    assert short is not None and [each.changes for each in short.offers] == [("--micro-batch 5",)]
    assert short.offers[0].needed_bytes == pytest.approx(110 * MB)
    assert shortage(headroom(made, 130 * MB), 64) is None


SHARDED = "divide it among {} such devices by --engine torch:shard=full"


@pytest.mark.parametrize(
    ("parameters", "base", "further", "change"),
    [
        (
            10, 60, 40, "take an optimizer, a strategy or an engine that keeps less than 40.0 MB besides steps, or "
            "train fewer parameters, as LoRA does (docs/training.md): gradients and the optimizer take 60 MB, or "
            + SHARDED.format(2),
        ),
        (
            50, 180, 0, "train fewer parameters, as LoRA does (docs/training.md): gradients and the optimizer take "
            "100 MB, or " + SHARDED.format(4),
        ),
        (100, 330, 0, "its weights alone take 100 MB: take a smaller model"),
        (5, 120, 0, "take smaller samples or a smaller model"),
    ],
)  # fmt: skip
def test_where_no_sample_fits_the_smallest_change_of_the_training_is_told(
    parameters: int, base: int, further: int, change: str
) -> None:
    """Of memory 90 MB may be used; 3 arrays of the parameters are weights, gradients, momentum.

    A tenth of the parameters are a block.
    """
    peaks = StepMemory(tuple(BatchMemory(size, (base + 2 * size) * MB) for size in (4, 8)))
    step = profiles.step(parameter_bytes=parameters * MB, memory=peaks, accelerator="cpu", job=True)
    step = profiles.changed(step, blocks=(parameters * MB // 40,) * 10)
    short = shortage(headroom(step, 100 * MB, host=further * MB), 8)
    assert short is not None and short.text.endswith(f"; no batch fits: {change}")


def test_an_offer_is_told_with_its_options_its_memory_and_its_time() -> None:
    offer = StepOffer(ComputeSettings(8), 2.1e9, 1.04, ("--micro-batch 8",))
    assert offer.text == "--micro-batch 8 (2.10 GB, 1.04 times the time)"
