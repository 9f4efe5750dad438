"""The text of --stream names a source and its options, and says what it does not know."""

import math

import pytest

from backends.strategies.sample_streams import DISTRIBUTIONS
from backends.streams.rate_shape import STEP, RateShape
from backends.streams.spec import LEAST, MEMORY, MOST, PATIENCE_S, StreamSpec


def test_options_have_defaults_and_the_rates_need_no_name() -> None:
    plain = StreamSpec.from_text("replay:S2,policy=truncate")
    assert (plain.source, plain.policy, plain.options) == ("replay", "truncate", {"rates": "S2"})
    assert plain[3:7] == (MEMORY, PATIENCE_S, LEAST, MOST)
    assert StreamSpec.from_text("replay").policy == "persist"
    assert StreamSpec.from_text("replay:rates=S1',memory=10,patience=5,least=2,most=64")[3:7] == (10, 5.0, 2, 64)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("reply:S1", "unknown source of a stream 'reply'; did you mean replay"),
        ("replay:S3", "rates are one of S1, S2, S1', S2', or numbers above 0"),
        ("replay:0", "rates are one of"),
        ("replay:pc@x", "rates are one of"),
        ("replay:S1,policy=drop", "policy is one of persist, truncate"),
        ("replay:S1,speed=2", "'speed=2' is not key=value with a key of"),
        ("replay:S1,shape=square", "shape is one of"),
        ("replay:S1,shape=wave,factor=3", "a wave of more than 2"),
        ("replay:S1,stop=0", "stop is a finite number above 0"),
        ("replay:S1,memory=0", "memory is a whole number from 1 on"),
        ("replay:S1,patience=nan", "patience is a finite number above 0"),
        ("replay:S1,least=9,most=8", "least is not above most, 8"),
    ],
)
def test_what_is_wrong_is_named(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        StreamSpec.from_text(text)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_drawn_rate_belongs_to_the_name_of_a_device(distribution: str) -> None:
    spec = StreamSpec.from_text(f"replay:{distribution}")
    rates = {name: spec.replay(name, 1).rate for name in ("pc", "tx2", "nano")}
    assert len({*rates.values()}) == 3
    assert spec.replay("tx2", 1).rate == rates["tx2"] != spec.replay("tx2", 2).rate


def test_faults_may_concern_one_device() -> None:
    spec = StreamSpec.from_text("replay:20,shape=step,factor=0.1,period=30,stop=60,malformed=5,at=tx2")
    assert spec.replay("tx2", 0) == (20.0, RateShape(STEP, 0.1, 30.0), 60.0, 5)
    assert spec.replay("pc", 0) == (20.0, RateShape(), math.inf, 0)


def test_a_batch_is_what_arrives_in_a_second_within_bounds() -> None:
    spec = StreamSpec.from_text("replay:S1,least=4,most=100")
    assert [spec.batch(rate) for rate in (0.0, 30.4, 30.5, 1e6)] == [4, 30, 31, 100]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("directory", "name the path, as in directory:path="),
        ("kafka:policy=truncate", "name the brokers, as in kafka:brokers="),
        ("directory:path=/x,rates=S1", "'rates=S1' is not key=value with a key of"),
    ],
)
def test_a_source_elsewhere_needs_its_place(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        StreamSpec.from_text(text)


def test_a_topic_and_a_group_belong_to_a_device() -> None:
    plain = StreamSpec.from_text("kafka:pc:9092/tx2:9092,patience=5")
    assert (plain.brokers(), plain.topic("a"), plain.group("a")) == ("pc:9092,tx2:9092", "planner-a", "planner-a")
    named = StreamSpec.from_text("kafka:brokers=pc:9092,topic=cameras-{device},group=g")
    assert (named.topic("a"), named.group("a")) == ("cameras-a", "g")
