"""The text of an engine says what exchanges the gradients, and how."""

import pytest

from backends.strategies.engine import OWN, TORCH, Engine


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("planner", Engine()),
        ("torch", Engine(TORCH, text="torch")),
        (
            "torch:hook=fp16,backend=gloo",
            Engine(TORCH, hook="fp16", backend="gloo", text="torch:hook=fp16,backend=gloo"),
        ),
        (
            "torch:hook=powersgd,rank=4,start=50",
            Engine(TORCH, hook="powersgd", rank=4, start=50, text="torch:hook=powersgd,rank=4,start=50"),
        ),
        ("torch:shard=full", Engine(TORCH, shard="full", text="torch:shard=full")),
    ],
)
def test_an_engine_is_written_as_a_name_with_options(text, expected):
    assert Engine.from_text(text) == expected
    assert Engine.from_text(OWN).name == OWN


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("horovod", "unknown engine 'horovod'; known: planner, torch"),
        ("torch:hook=fp61", "did you mean fp16"),
        ("torch:backend=mpi", "backend is one of auto, gloo, nccl, not 'mpi'"),
        ("torch:rank=2", "belongs to hook=powersgd"),
        ("torch:hook=powersgd,rank=0", "a whole number from 1 on"),
        ("torch:hook=powersgd,start=1", "a whole number from 2 on"),
        ("torch:speed=9", "not key=value with a key of hook, rank, start, backend"),
        ("torch:shard=full,hook=fp16", "sends gradients as they are; leave hook=fp16 out"),
        ("planner:hook=fp16", "key of none"),
    ],
)
def test_what_no_engine_has_is_named(text, said):
    with pytest.raises(ValueError, match=said):
        Engine.from_text(text)
