"""Samples are divided by label: every property of the three partitions, and their texts."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as some

from backends.data.dataset import shards
from backends.data.partition import NOBODY, Partition, as_labels, counted, own_samples
from backends.protocol.member_specs import DataPart

LABELS = some.lists(some.integers(0, 9), min_size=1, max_size=300).map(lambda values: np.array(values, np.int64))
WEIGHTS = some.dictionaries(
    some.text("abcxyz-", min_size=1, max_size=4), some.floats(1e-3, 1e5), min_size=1, max_size=8
)
SEEDS = some.integers(0, 2**31 - 1)
FEW = some.integers(1, 12).map(lambda number: Partition("labels", float(number)))
DRAWN = some.floats(1e-4, 1e4).map(lambda alpha: Partition("dirichlet", alpha))

TEN = np.repeat(np.arange(10), 100)
FOUR = dict.fromkeys("abcd", 1.0)


def divided(partition, labels, weights, seed):
    """The division, for cases in which every device has a sample."""
    try:
        return partition.divide(labels, weights, seed)
    except ValueError:
        assume(False)


def held(labels, division):
    return {name: counted(labels[division.positions(name)]) for name in division.names}


@settings(deadline=None)
@given(FEW | DRAWN, LABELS, WEIGHTS, SEEDS)
def test_no_sample_has_two_owners_and_no_device_is_without_one(partition, labels, weights, seed):
    made = divided(partition, labels, weights, seed)
    positions = np.concatenate([made.positions(name) for name in weights])
    assert len(set(positions.tolist())) == len(positions) == np.count_nonzero(made.owners != NOBODY)
    assert all(len(made.positions(name)) for name in weights)


@settings(deadline=None)
@given(FEW | DRAWN, LABELS, WEIGHTS, SEEDS)
def test_every_sample_has_an_owner_where_the_devices_can_hold_all_labels(partition, labels, weights, seed):
    made = divided(partition, labels, weights, seed)
    can = partition.kind == "dirichlet" or partition.value * len(weights) >= len(set(labels.tolist()))
    assert (NOBODY not in made.owners) == can


@settings(deadline=None)
@given(FEW, LABELS, WEIGHTS, SEEDS)
def test_a_device_holds_at_most_so_many_labels_and_a_label_is_held_whole_or_not_at_all(few, labels, weights, seed):
    made = divided(few, labels, weights, seed)
    assert all(1 <= len(of) <= few.value for of in held(labels, made).values())
    for label in set(labels.tolist()):
        owned = made.owners[labels == label] != NOBODY
        assert owned.all() or not owned.any()


@settings(deadline=None)
@given(FEW | DRAWN, LABELS, WEIGHTS, SEEDS, some.randoms())
def test_a_device_keeps_its_samples_whatever_the_order_of_all(partition, labels, weights, seed, random):
    made = divided(partition, labels, weights, seed)
    order = list(weights)
    random.shuffle(order)
    again = partition.divide(labels, {name: weights[name] for name in order}, seed)
    np.testing.assert_array_equal(again.owners, made.owners)
    assert again.digest == made.digest


@given(FEW | DRAWN, WEIGHTS, SEEDS)
def test_labels_may_be_texts(partition, weights, seed):
    words = np.array(list("abcdefghij"))[TEN]
    made = divided(partition, TEN, weights, seed)
    np.testing.assert_array_equal(partition.divide(words, weights, seed).owners, made.owners)


def test_ten_devices_with_a_label_each_hold_ten_labels():
    """The setting of ScaDLES for CIFAR-10; 25 devices with 4 each are that for CIFAR-100."""
    made = Partition("labels", 1.0).divide(TEN, {f"d{i}": 1.0 + i for i in range(10)}, 0)
    assert sorted(label for of in held(TEN, made).values() for label in of) == [str(i) for i in range(10)]
    hundred = np.repeat(np.arange(100), 8)
    made = Partition("labels", 4.0).divide(hundred, {f"d{i}": 1.0 for i in range(25)}, 3)
    assert all(list(of.values()) == [8] * 4 for of in held(hundred, made).values())


def test_a_large_concentration_divides_by_weight_and_a_small_one_gives_each_label_to_one_device():
    alike = held(TEN, Partition("dirichlet", 1e6).divide(TEN, {"fast": 3.0, "slow": 1.0}, 1))
    assert all(abs(number - 75) <= 1 for number in alike["fast"].values())
    apart = held(TEN, Partition("dirichlet", 1e-3).divide(TEN, {"a": 1.0, "b": 1.0}, 8))
    assert sorted(number for of in apart.values() for number in of.values()) == [100] * 10


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_shares_have_the_means_and_the_spread_of_the_dirichlet_distribution(alpha):
    """The share of one of two equal devices is Beta(a, a): mean 1/2, variance 1/4/(2 a + 1)."""
    labels = np.zeros(1000, np.int64)
    found = []
    for seed in range(1500):
        try:
            found.append(len(Partition("dirichlet", alpha).divide(labels, {"a": 1.0, "b": 1.0}, seed).positions("a")))
        except ValueError:  # all samples are one device's
            continue
    shares = np.array(found) / 1000
    assert shares.mean() == pytest.approx(0.5, abs=0.03)
    if alpha >= 1:
        assert shares.var() == pytest.approx(0.25 / (2 * alpha + 1), rel=0.15)


def test_another_seed_divides_otherwise():
    digests = {Partition("dirichlet", 1.0).divide(TEN, FOUR, seed).digest for seed in range(5)}
    assert len(digests) == 5


@pytest.mark.parametrize(
    ("partition", "labels", "message"),
    [
        (Partition("labels", 1.0), [0, 0, 0], "no sample to d; give more labels a device, fewer devices, or another"),
        (Partition("dirichlet", 1e-4), TEN, "give a larger ALPHA, fewer devices, or another --seed than 7"),
    ],
)
def test_a_device_without_samples_is_named_with_the_remedy(partition, labels, message):
    weights = FOUR if len(labels) < 10 else {f"d{i}": 1.0 for i in range(30)}
    with pytest.raises(ValueError, match=f"it leaves no sample to .*{message[-20:]}") as raised:
        partition.divide(np.array(labels), weights, 7)
    assert message in str(raised.value)


def test_a_member_draws_iid_samples_without_a_look_at_labels():
    def refused():
        raise AssertionError("labels were read")

    own = own_samples(DataPart((3.0, 1.0), 1, 4), 40, refused)
    np.testing.assert_array_equal(own.positions, shards(40, (3.0, 1.0), 4)[1])
    assert own.digest == ""


@given(FEW | DRAWN, SEEDS)
def test_members_that_divide_by_themselves_agree(partition, seed):
    text = f"{partition.kind}={partition.value!r}"
    names, weights = ("b", "a", "c"), (2.0, 1.0, 1.0)
    made = divided(partition, TEN, dict(zip(names, weights, strict=True)), seed)
    for member, name in enumerate(names):
        own = own_samples(DataPart(weights, member, seed, text, names), len(TEN), lambda: TEN)
        np.testing.assert_array_equal(own.positions, made.positions(name))
        assert own.digest == made.digest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("iid", Partition()),
        ("labels=4", Partition("labels", 4.0)),
        ("dirichlet=0.5", Partition("dirichlet", 0.5)),
        ("dirichlet=1e6", Partition("dirichlet", 1e6)),
    ],
)
def test_texts_are_read(text, expected):
    assert Partition.from_text(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("skewed", "there is no such partition; known: iid, labels=N, dirichlet=ALPHA"),
        ("labels=0", "N is a whole number from 1 to 1000000"),
        ("labels=many", "N is a whole number"),
        ("dirichlet=0", "ALPHA is a number above 0"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Partition.from_text(text)


def test_labels_are_whole_numbers_or_texts_one_a_sample():
    assert as_labels([[1], [2]], 2).tolist() == [1, 2] and as_labels(["a", "b"], 2).tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="targets of type float64 are no labels"):
        as_labels([0.5, 1.0], 2)
    with pytest.raises(ValueError, match=r"\(3,\) targets for 2 samples are no labels; give one a sample"):
        as_labels([1, 2, 3], 2)
    with pytest.raises(ValueError, match=r"\(2, 3\) targets for 2 samples"):
        as_labels(np.eye(3, dtype=int)[:2], 2)
