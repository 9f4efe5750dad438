"""Who gives samples in a step follows from the seed and the step, and is the share asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.strategies.data_injection import InjectionSpec, share_of, sharers

NAMES = ("desktop", "nano", "tx2", "xavier")
SHARES = st.floats(0.01, 1.0)
#: The paper's alpha and beta.
OF_THE_PAPER = (0.05, 0.1, 0.25, 0.5)


def spec(alpha: float = 0.25, beta: float = 0.1) -> InjectionSpec:
    return InjectionSpec.from_text(f"alpha={alpha},beta={beta}")


def test_the_text_has_both_shares() -> None:
    assert spec() == InjectionSpec(0.25, 0.1, "alpha=0.25,beta=0.1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("alpha=0.25", "give both shares"),
        ("alpha=0,beta=0.1", "above 0 and at most 1"),
        ("alpha=0.1,beta=1.5", "above 0 and at most 1"),
        ("alpha=nan,beta=0.1", "above 0 and at most 1"),
        ("alpha=much,beta=0.1", "alpha is a number, not 'much'"),
        ("gamma=0.1,beta=0.1", "a key of alpha, beta"),
        ("alpha=0.1,beta=0.1,beta=0.2", "twice"),
        ("", "not of the form|not key=value"),
    ],
)
def test_another_text_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        InjectionSpec.from_text(text)


@given(SHARES, st.integers(0, 2**31), st.integers(0, 10**6), st.permutations(NAMES))
def test_the_order_of_the_names_does_not_matter(alpha: float, seed: int, step: int, names: list[str]) -> None:
    assert sharers(names, alpha, seed, step) == sharers(NAMES, alpha, seed, step)


@given(SHARES, st.integers(0, 2**31), st.integers(0, 10**6), st.integers(2, 12))
def test_their_number_is_next_to_the_share_of_the_members(alpha: float, seed: int, step: int, members: int) -> None:
    names = [str(member) for member in range(members)]
    drawn = sharers(names, alpha, seed, step)
    assert abs(len(drawn) - alpha * members) < 1.0
    assert set(drawn) <= set(names) and len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("alpha", OF_THE_PAPER)
def test_every_device_gives_in_that_share_of_the_steps_also_where_there_are_few(alpha: float) -> None:
    steps = 4000
    gave = dict.fromkeys(NAMES, 0)
    for step in range(steps):
        for name in sharers(NAMES, alpha, 7, step):
            gave[name] += 1
    for count in gave.values():
        assert count / steps == pytest.approx(alpha, abs=0.03)


@given(SHARES, SHARES, st.integers(1, 512), st.integers(2, 20))
def test_what_is_left_of_the_own_samples_and_what_the_others_give_is_a_batch(
    alpha: float, beta: float, batch: int, members: int
) -> None:
    shared = spec(alpha, beta).shared(batch, members)
    assert shared / beta + alpha * (members - 1) * shared == pytest.approx(batch)
    assert shared <= beta * batch


def test_a_device_gives_its_share_to_all_others_and_others_nothing() -> None:
    step = next(step for step in range(100) if "tx2" in sharers(NAMES, 0.25, 0, step))
    given_ = share_of(spec(0.25, 0.5), NAMES, "tx2", 22, 0, step)
    assert given_ is not None
    assert given_.receivers == ("desktop", "nano", "xavier")
    assert given_.samples in (8, 9)  # 0.5 * 22 / (1 + 0.25 * 0.5 * 3)
    assert all(share_of(spec(0.25, 0.5), NAMES, name, 22, 0, step) is None for name in given_.receivers)


def test_of_small_batches_the_share_is_right_on_average() -> None:
    found = [share_of(spec(1.0, 0.05), NAMES[:2], "nano", 4, 0, step) for step in range(4000)]
    mean = sum(each.samples for each in found if each is not None) / len(found)
    assert mean == pytest.approx(spec(1.0, 0.05).shared(4, 2), abs=0.02)
