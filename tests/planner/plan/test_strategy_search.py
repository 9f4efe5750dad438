"""The best of the strategies of which it is known what their images are worth."""

import math
from typing import Any

import pytest

from backends.strategies.strategy import Strategy
from planner.errors import PlanError
from planner.plan.recommend import make_plan, recommend
from planner.plan.strategy_search import EQUAL
from planner.plan.strategy_search import best_strategy as best
from planner.predict.sample_efficiency import NONE, RoundsEfficiency, SampleEfficiencies, SampleEfficiency, Source
from planner.profile.file import Profile
from profilers.records.steps import ComputeSettings
from tests.planner import profiles
from tests.planner.requests import asked

TIME = {"time": 1.0}
SOURCE = Source("cipher", "fashion-mnist", 3000, 32, 0.7, ("net-a", "homo-a"), (6,), "2026-11-21")


def known(**least: float) -> SampleEfficiencies:
    each = (
        SampleEfficiency(name.replace("_", "-"), 1.2 * worth, worth, 1.5 * worth, 6, 0) for name, worth in least.items()
    )
    return NONE._replace(source=SOURCE, measured=tuple(each))


def fleet(gradient_s: float = 0.5, names: str = "abcd"):
    return profiles.profile({name: profiles.device(profiles.step(gradient_s)) for name in names})


def predicted_s(profile: Profile, text: str, **changes: Any) -> float:
    """Of the best cluster with a strategy."""
    request = asked(TIME, steps=1000, strategy=Strategy.from_text(text), **changes)
    return recommend(profile, request).row(1).prediction.time_s


def test_without_measured_efficiencies_the_quickest_equal_one_is_taken_and_said() -> None:
    found = best(fleet(), asked(TIME, steps=1000), "auto", NONE)
    times = {text: predicted_s(fleet(), text) for text in EQUAL}
    assert found.inputs.strategy.text == min(times, key=times.__getitem__) == "allreduce"
    assert found.row(1).prediction.time_s == pytest.approx(times["allreduce"])
    assert found.details[0].startswith("--strategy auto chose allreduce among parameter-server:sync=synchronous, ")


def test_a_quicker_step_wins_if_it_is_worth_enough() -> None:
    def chosen(efficiency: float) -> str:
        return best(fleet(0.1), asked(TIME, steps=1000), "auto", known(crossover=efficiency)).inputs.strategy.text

    allreduce, crossover = (predicted_s(fleet(0.1), text, include=tuple("abcd")) for text in ("allreduce", "crossover"))
    assert crossover < allreduce
    assert chosen(1.01 * crossover / allreduce) == "crossover"
    assert chosen(0.99 * crossover / allreduce) == "allreduce"


def test_a_plan_has_as_many_steps_as_teach_as_much_and_says_where_that_is_from() -> None:
    found = best(fleet(0.1), asked(TIME, steps=900), "auto", known(sgp=0.9))
    plan = make_plan(found, "fleet.toml")
    assert (plan.run.strategy.text, plan.run.steps) == ("sgp", 1000)
    assert plan.prediction.time_s == pytest.approx(1000 / 4 * plan.workers[0].cycle_s)
    worth, source = found.details[1:3]
    assert worth == (
        "sgp is taken to need 1.11 times the images of synchronous workers, the most in 6 pairs of runs "
        "(0.93 on average, 0.74 at the least)"
    )
    assert source == (
        "sample efficiencies were measured with cipher on fashion-mnist to 70% accuracy (net-a, homo-a; 2026-11-21), "
        "not with net"
    )


def test_one_device_alone_exchanges_nothing_whatever_it_would_be_worth() -> None:
    found = best(fleet(0.001), asked(TIME, steps=1000), "auto", known(crossover=0.5))
    assert len(make_plan(found, "fleet.toml").workers) == 1
    assert make_plan(found, "fleet.toml").run.steps == 1000


def test_workers_make_as_many_more_steps_as_their_batches_are_worth_less() -> None:
    """Four workers need more images than one, as the critical batch says.

    Here it is as large as one worker's batch: (32 + 4 * 32) / (32 + 32) = 2.5 times the images.
    """
    efficiencies = NONE._replace(source=SOURCE, critical_batch=32.0)
    found = best(fleet(), asked(TIME, steps=1000, include=tuple("abcd"), batch=32), "auto", efficiencies)
    assert make_plan(found, "fleet.toml").run.steps == 2500
    assert (
        "4 synchronous workers need 2.50 times the images of one device alone; --steps are its steps" in found.details
    )


def test_one_device_wins_where_larger_batches_teach_next_to_nothing() -> None:
    def members(critical: float | None) -> int:
        efficiencies = NONE._replace(source=SOURCE, critical_batch=critical)
        return len(best(fleet(), asked(TIME, steps=1000), "auto", efficiencies).row(1).config.workers)

    assert (members(None), members(0.1)) == (4, 1)


def test_energy_counts_the_steps_that_are_needed_too() -> None:
    watts = {"energy": 1.0}
    assert best(fleet(0.1), asked(watts, steps=1000), "auto", known(crossover=2.0)).inputs.strategy.text == "crossover"
    assert best(fleet(0.1), asked(watts, steps=1000), "auto", known(crossover=0.01)).inputs.strategy.text != "crossover"


def test_a_strategy_that_is_named_is_taken_and_its_steps_are_those_that_were_asked_for() -> None:
    found = best(fleet(names="ab"), asked(TIME, steps=1000), "gaia", known(gaia=0.5))
    assert found.inputs.strategy.text == "gaia"
    assert make_plan(found, "fleet.toml").run.steps == 1000


def test_where_nothing_can_be_ranked_the_reason_is_told() -> None:
    with pytest.raises(PlanError, match="no such device"):
        best(fleet(names="a"), asked(TIME, include=("b",)), "auto", NONE)


def test_the_optimizer_is_that_of_every_candidate_and_leaves_out_those_that_it_does_not_fit() -> None:
    request = asked(TIME, steps=900, optimizer="adam")
    found = best(fleet(0.1), request, "auto", known(dlion=10.0, sgp=5.0))
    assert make_plan(found, "fleet.toml").run.strategy.text == "sgp:optimizer=adam"
    assert "dlion" not in found.details[0]
    assert any("with sgd, not adam" in note for note in found.details)


def test_a_plan_names_the_optimizer_and_how_steps_were_computed() -> None:
    profile = profiles.profile({"a": profiles.device(profiles.step(micro_batch=8, precision="bf16"))})
    found = best(profile, asked(TIME, steps=900, optimizer="adamw:beta2=0.95"), "sgp", NONE)
    plan = make_plan(found, "fleet.toml")
    assert plan.run.strategy.optimizer.as_text() == "adamw:beta2=0.95"
    assert plan.computes == {"a": ComputeSettings(8, "bf16")}
    with pytest.raises(PlanError, match="--optimizer adam with strategy gaia: optimizer adam excludes compressor gaia"):
        best(profile, asked(TIME, optimizer="adam"), "gaia", NONE)


def of_rounds(power: float = 0.9, decline: float = 0.0005) -> SampleEfficiencies:
    return NONE._replace(
        rounds=(RoundsEfficiency("diloco", power, decline, 0.1, (2, 4), (10, 200), 12, 0, SOURCE),), critical_batch=8.0
    )


def test_of_rounds_those_that_suit_the_links_are_chosen() -> None:
    """An exchange of 1 MB takes 0.12 s at 100 Mbit/s and twelve times as long at 8."""
    slow = profiles.profile(
        {name: profiles.device(profiles.step(0.01)) for name in "abcd"}, dict.fromkeys("abcd", 8 * profiles.MBIT)
    )
    fast = fleet(0.01)
    chosen = [
        best(each, asked(TIME, steps=100_000), "auto", of_rounds(decline=0.002)).inputs.strategy
        for each in (fast, slow)
    ]
    assert [strategy.local.name for strategy in chosen] == ["speed", "speed"]
    assert 10 <= (chosen[0].local.every or 0) < (chosen[1].local.every or 0) <= 200


def test_where_rounds_teach_too_little_a_device_alone_is_chosen() -> None:
    slow = profiles.profile(
        {name: profiles.device(profiles.step(0.01)) for name in "ab"}, dict.fromkeys("ab", profiles.MBIT)
    )
    found = best(slow, asked(TIME, steps=10_000), "auto", of_rounds(power=0.1))
    assert len(found.row(1).config.workers) == 1


def test_what_rounds_are_taken_to_need_is_said_with_its_interval() -> None:
    found = best(fleet(0.01), asked(TIME, steps=100_000), "auto", of_rounds())
    steps = found.inputs.strategy.local.every or 0
    assert len(found.row(1).config.workers) == 4
    factor = 4 ** (0.1 + 0.0005 * steps)
    note, source = found.details[1:3]
    assert note.startswith(
        f"4 workers with rounds of {steps} steps of the fastest are taken to need {factor:.2f} times"
    )
    assert f"({factor * math.exp(-0.196):.2f} to {factor * math.exp(0.196):.2f})" in note
    assert source.startswith("sample efficiencies were measured with cipher on fashion-mnist to 70% accuracy")
    assert make_plan(found, "fleet.toml").run.steps == pytest.approx(100_000 * factor, rel=0.01)


def test_where_a_device_alone_wins_the_limit_is_that_of_the_strategy_that_comes_closest() -> None:
    """Rounds come closer than steps, all of whose exchanges cross a slow link."""
    slow = profiles.profile(
        {name: profiles.device(profiles.step(0.01)) for name in "ab"}, dict.fromkeys("ab", 0.1 * profiles.MBIT)
    )
    found = best(slow, asked(TIME, steps=10_000), "auto", of_rounds(power=0.8))
    assert len(found.row(1).config.workers) == 1
    (note,) = [note for note in found.notes if "alone is better" in note or "device alone" in note]
    assert note.startswith("with diloco:local=speed:every=")
