"""How many samples devices give one another in a run, and the bytes of these."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.strategies.data_injection import InjectionSpec, share_of
from planner.predict.data_injection import injected_traffic

SPEC = InjectionSpec.from_text("alpha=0.5,beta=0.25")


def test_a_device_gives_in_its_share_of_the_steps_and_gets_what_the_others_give() -> None:
    found = injected_traffic(SPEC, {"a": 32, "b": 64}, {"a": 10.0, "b": 20.0}, 100, through_server=True)
    # 0.5 * 10 steps, in each of which 0.25 * 32 / (1 + 0.5 * 0.25) samples are given.
    assert found["a"].shared == pytest.approx(5 * 8 / 1.125)
    assert found["b"].shared == pytest.approx(10 * 16 / 1.125)
    assert (found["a"].received, found["b"].received) == pytest.approx((found["b"].shared, found["a"].shared))
    assert found["a"].sent_bytes == pytest.approx(100 * found["a"].shared)
    assert found["a"].received_bytes == pytest.approx(100 * found["b"].shared)


def test_peers_send_a_sample_to_each_of_the_others_and_a_server_gets_it_once() -> None:
    batches, steps = dict.fromkeys("abcd", 32), dict.fromkeys("abcd", 10.0)
    direct, through = (injected_traffic(SPEC, batches, steps, 100, each)["a"] for each in (False, True))
    assert direct.sent_bytes == pytest.approx(3 * (through.sent_bytes or 0.0))
    assert direct.received_bytes == through.received_bytes


def test_the_bytes_of_unknown_samples_are_unknown() -> None:
    found = injected_traffic(SPEC, {"a": 32, "b": 32}, {"a": 1.0, "b": 1.0}, None, through_server=True)
    assert found["a"].shared > 0 and (found["a"].sent_bytes, found["a"].received_bytes) == (None, None)


@given(st.floats(0.01, 1), st.floats(0.01, 1), st.integers(2, 12), st.integers(1, 512))
def test_nobody_receives_more_than_a_batch_a_step(alpha: float, beta: float, members: int, batch: int) -> None:
    names = [str(member) for member in range(members)]
    spec = InjectionSpec(alpha, beta, "")
    found = injected_traffic(spec, dict.fromkeys(names, batch), dict.fromkeys(names, 1.0), 1, through_server=False)
    assert all(0 <= each.received < batch for each in found.values())


def test_it_is_the_mean_of_what_is_drawn() -> None:
    batches, steps = {"a": 12, "b": 20, "c": 7}, 3000
    expected = injected_traffic(SPEC, batches, dict.fromkeys(batches, float(steps)), None, through_server=False)
    for name, batch in batches.items():
        drawn = (share_of(SPEC, tuple(batches), name, batch, 11, step) for step in range(steps))
        assert sum(each.samples for each in drawn if each) == pytest.approx(expected[name].shared, rel=0.06)
