"""Budgets by hand: a message takes 0.1 s on any link, and gradients take 0.1 s or more."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.predict import link_budgets
from planner.predict.member_costs import MemberCosts

MESSAGE_S = 0.1


def members(gradient_s: list[float], receive_s: float = 0.0) -> MemberCosts:
    count = len(gradient_s)
    zeros, apart = np.zeros(count), 1.0 - np.eye(count)
    return MemberCosts(
        ready_s=np.array(gradient_s), gradient_s=np.array(gradient_s), service_s=zeros, add_s=zeros, after_s=zeros,
        order_s=zeros, computes=np.full(count, True),
        out_s=np.full(count, MESSAGE_S), in_s=np.full(count, MESSAGE_S), alone_s=MESSAGE_S * apart,
        latency_s=0 * apart, send_s=0 * apart, receive_s=receive_s * apart,
    )  # fmt: skip


def to_all(count: int) -> np.ndarray:
    return (1.0 - np.eye(count))[None]


def test_members_that_are_ready_at_once_share_all_links_all_the_time() -> None:
    found = link_budgets.in_turn(members([0.1, 0.1, 0.1]), to_all(3))
    assert found == pytest.approx(np.where(np.eye(3), np.inf, 0.5))
    assert found == pytest.approx(link_budgets.all_the_time(members([0.1, 0.1, 0.1]), to_all(3)))


def test_the_last_one_has_the_links_of_its_receivers_for_itself() -> None:
    shares = np.array([[[0, 0, 1.0], [0, 0, 1.0], [0, 0, 0]]])
    slow = members([0.1, 0.4, 0.1])
    assert link_budgets.in_turn(slow, shares)[1, 2] == pytest.approx(0.4 / MESSAGE_S)
    assert link_budgets.all_the_time(slow, shares)[1, 2] == pytest.approx(0.4 / (2 * MESSAGE_S))


def test_a_receiver_that_computes_takes_in_with_half_of_its_processor() -> None:
    costs = members([0.1, 0.4], receive_s=0.1)
    fits = link_budgets.in_turn(costs, to_all(2))
    assert fits[0, 1] == pytest.approx(0.1 / (0.1 / link_budgets.BESIDE_COMPUTATION))
    on_another = costs._replace(computes=np.full(2, False))
    assert link_budgets.in_turn(on_another, to_all(2))[0, 1] == pytest.approx(0.1 / MESSAGE_S)


def test_each_message_costs_a_receiver_what_its_own_link_costs() -> None:
    """Of two that begin at once, one is four times as dear to take in as the other."""
    shares = np.array([[[0, 0, 1.0], [0, 0, 1.0], [0, 0, 0]]])
    costs = members([0.1, 0.1, 0.4])._replace(receive_s=np.array([[0, 0, 0.4], [0, 0, 0.1], [0, 0, 0]]))
    fits = link_budgets.in_turn(costs, shares)
    assert fits[:2, 2] == pytest.approx([0.1 / (0.5 / link_budgets.BESIDE_COMPUTATION)] * 2)


def test_what_comes_during_a_gradient_makes_it_longer_and_its_messages_larger() -> None:
    fits = link_budgets.in_turn(members([0.1, 0.4], receive_s=0.1), to_all(2))
    held_up_s = 0.4 + fits[0, 1] * 0.1
    assert fits[1, 0] == pytest.approx(held_up_s / MESSAGE_S)


@given(st.lists(st.floats(0.01, 10.0), min_size=2, max_size=5))
def test_in_turn_at_least_as_much_fits_where_receiving_costs_nothing(gradient_s: list[float]) -> None:
    costs = members(gradient_s)
    in_turn, always = (
        each(costs, to_all(len(gradient_s))) for each in (link_budgets.in_turn, link_budgets.all_the_time)
    )
    assert (in_turn >= always * (1 - 1e-9)).all()
