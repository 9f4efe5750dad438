"""Rounds of local steps: how long they are, and what a step of one takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.strategies.local_updates import EXCHANGE_SHARE, MOST_CHOSEN, LocalSpec
from backends.strategies.strategy import Strategy
from planner.plan.recommend import make_plan, recommend
from planner.predict import cycle, interval
from planner.predict.clusters import Candidates
from planner.predict.inputs import Inputs
from planner.predict.kinds import rounds as local_rounds
from planner.predict.kinds.cycles import Cycles
from tests.planner import profiles
from tests.planner.predictions import inputs_of
from tests.planner.requests import asked

EXACT = interval.ModelErrors(step=0.0, watts=0.0, kinds=dict.fromkeys(cycle.KINDS, 0.0))
ALL = np.ones((1, 3), bool)
STEP_S = np.array([[0.1, 0.2, 0.25]])
ADD_S = 0.002
UPDATE_S = 0.002 + ADD_S


def steps(text: str, exchange_s: float = 0.0) -> list[float]:
    found = local_rounds.of_candidates(LocalSpec.from_text(text), STEP_S, np.array([exchange_s]), ALL)
    return found.steps[0].tolist()


def three(strategy: str, **changes: object) -> Inputs:
    """1 MB at 100 Mbit/s; steps of 0.11, 0.21 and 0.26 s."""
    return inputs_of(profiles.fleet(0.1, 0.2, 0.25, **changes), strategy=Strategy.from_text(strategy))


def cycles(costs: Inputs, mask: int = 7) -> Cycles:
    return cycle.cycles(costs, Candidates(np.array([mask]), np.array([0])))[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("steps:every=8", [8, 8, 8]),
        ("time:seconds=2.05", [20, 10, 8]),
        ("time:seconds=0.01", [1, 1, 1]),
        ("speed:every=50", [50, 25, 20]),
    ],
)
def test_members_make_as_many_steps_as_in_a_run(text: str, expected: list[float]) -> None:
    assert steps(text) == expected


@pytest.mark.parametrize("text", ["steps", "time", "speed"])
def test_a_round_that_nobody_named_computes_nine_times_as_long_as_it_exchanges(text: str) -> None:
    chosen = steps(text, exchange_s=0.5)
    computed_s = (np.array(chosen) * STEP_S[0]).max()
    assert computed_s == pytest.approx((1 / EXCHANGE_SHARE - 1) * 0.5, rel=0.06)


@pytest.mark.parametrize(("run_steps", "most"), [(3 * 10 * 50, 50), (3 * 10 * 1000, MOST_CHOSEN), (3, 1)])
def test_a_run_has_at_least_ten_rounds_of_each_member(run_steps: int, most: int) -> None:
    local = LocalSpec.from_text("steps")
    found = local_rounds.of_candidates(local, STEP_S, np.array([1e3]), ALL, run_steps)
    assert found.steps[0].tolist() == [most] * 3
    named = local_rounds.of_candidates(LocalSpec.from_text("steps:every=300"), STEP_S, np.array([1e3]), ALL, run_steps)
    assert named.steps[0].tolist() == [300] * 3


@given(st.sampled_from(["steps", "time", "speed"]), st.floats(0, 10), st.permutations([0.1, 0.2, 0.25, 1.0]))
def test_each_makes_a_step_at_least_and_the_fast_no_fewer(text: str, exchange_s: float, step_s: list[float]) -> None:
    members = np.ones((1, 4), bool)
    found = local_rounds.of_candidates(LocalSpec(text), np.array([step_s]), np.array([exchange_s]), members).steps[0]
    assert found.min() >= 1
    assert (np.diff(found[np.argsort(step_s)]) <= 0).all()


def test_a_step_has_its_part_of_the_exchange() -> None:
    """The exchange of a round all to all takes 2 * 80 ms, an update and two additions."""
    found = cycles(three("local-sgd:topology=all,local=time:seconds=2.2"))
    round_s = 20 * 0.11 + 2 * 0.08 + UPDATE_S + 2 * ADD_S
    assert found.cycle_s[0].tolist() == pytest.approx([round_s / 20, round_s / 10, round_s / 8])
    assert found.network_bytes[0].tolist() == pytest.approx([2e6 / 20, 2e6 / 10, 2e6 / 8])


def test_the_state_goes_to_all_others_once_a_round() -> None:
    plain, stated = (
        cycles(three("local-sgd:local=steps:every=10", state_bytes=each)).network_bytes for each in (0, 50_000)
    )
    assert (stated - plain)[0].tolist() == pytest.approx([2 * 50_000 / 10] * 3)


def test_steps_before_the_first_round_are_exchanged_one_by_one() -> None:
    rounds = "local-sgd:local=steps:every=100,after=250"
    whole = Candidates(np.array([7]), np.array([0]))
    synchronous, later = (cycles(three(f"local-sgd:local=steps:every={each}")) for each in (1, 100))
    found = cycle.cycles(three(rounds), whole, np.array([1000.0]))[0]
    expected_s = 250 / (1 / synchronous.cycle_s).sum() + 750 / (1 / later.cycle_s).sum()
    assert 1000 / (1 / found.cycle_s).sum() == pytest.approx(expected_s)
    sent = (found.network_bytes / found.cycle_s).sum() * expected_s
    assert sent == pytest.approx(250 * synchronous.network_bytes.mean() + 750 * later.network_bytes.mean())
    assert cycle.cycles(three(rounds), whole, np.array([100.0]))[0].cycle_s.tolist() == synchronous.cycle_s.tolist()
    assert cycles(three(rounds)).cycle_s.tolist() == later.cycle_s.tolist()


def test_rounds_around_a_server_that_waits_for_nobody_end_when_each_has_exchanged() -> None:
    found = cycles(three("async-diloco:local=steps:every=100"))
    assert (found.cycle_s[0] > [0.11, 0.21, 0.26]).all()
    assert found.cycle_s[0].tolist() == pytest.approx([0.11, 0.21, 0.26], rel=0.03)


def test_the_plan_has_the_rounds_that_were_chosen_for_its_cluster() -> None:
    made = profiles.fleet(0.1, 0.2)
    ranked = recommend(made, asked({"time": 1.0}, steps=10_000, strategy=Strategy.from_text("diloco")))
    place = next(at for at in range(1, len(ranked) + 1) if len(ranked.row(at).config.workers) == 2)
    plan = make_plan(ranked, "fleet.toml", place)
    assert plan.run.strategy.local.seconds is not None
    again = recommend(made, asked({"time": 1.0}, steps=10_000, strategy=plan.run.strategy))
    same = next(row for row in map(again.row, range(1, len(again) + 1)) if len(row.config.workers) == 2)
    assert same.prediction.time_s == pytest.approx(plan.prediction.time_s, rel=0.01)


def test_what_the_exchange_may_miss_counts_less_the_longer_a_round_is() -> None:
    made = profiles.fleet(0.1, 0.1)
    noisy = made._replace(links=tuple(each._replace(bytes_per_s=profiles.seconds(1.25e7, 0.5)) for each in made.links))

    def uncertainty(every: int) -> float:
        strategy = Strategy.from_text(f"local-sgd:local=steps:every={every}")
        request = asked({"time": 1.0}, steps=1000, strategy=strategy, include="ab")
        return interval.spread(
            recommend(noisy, request).inputs, Candidates(np.array([3]), np.array([0])), 1000, errors=EXACT
        ).deviation(1.0, 0.0)[0]

    assert uncertainty(100) < uncertainty(2)


def test_recommend_tells_what_a_round_is() -> None:
    made = profiles.fleet(0.1, 0.2)
    strategy = Strategy.from_text("local-sgd:local=time:seconds=2.2")
    ranked = recommend(made, asked({"time": 1.0}, steps=10_000, strategy=strategy))
    (note,) = [note for note in ranked.details if "a round of" in note]
    assert note == (
        "a round of the best cluster takes 2.29 s and 218 J; the exchange is 86.0 ms of it; local steps: a 20, b 10"
    )
