"""Which run of a race comes next."""

from benchmarks.racing.jobs import best_rate, next_job, trials
from benchmarks.racing.records import RACE, TUNING, Finished, Setting

from .made import failed, outcome, race, run, trial


def _all(one_race, done=()):
    """What is run one after the other, every run taking its place among what is done."""
    found, runs = [], list(done)
    while (setting := next_job(one_race, runs)) is not None:
        found.append(setting)
        runs.append(Finished(setting, 0.0, 0.0, outcome()))
    return found


def test_every_strategy_tries_every_rate_before_any_race() -> None:
    purposes = [setting.purpose for setting in _all(race())]
    assert purposes == [TUNING] * 4 + [RACE] * 8
    assert {(each.strategy, each.rate) for each in trials(race())} == {
        (strategy, rate) for strategy in ("fast", "slow") for rate in (0.01, 0.02)
    }


def test_strategies_take_turns_and_all_environments_come_before_the_next_seed() -> None:
    races = [(each.seed, each.environment, each.strategy) for each in _all(race(rates=(0.05,)))]
    assert races == [
        (seed, environment, strategy)
        for seed in (0, 1)
        for environment in ("here", "there")
        for strategy in ("fast", "slow")
    ]


def test_what_is_done_is_not_done_again_also_where_it_failed() -> None:
    done = [failed("fast", TUNING, 0.01), trial("slow", 0.01, 0.5)]
    assert [each for each in _all(race(), done) if each.purpose == TUNING] == [
        Setting("test", TUNING, "here", strategy, 0, 0.02) for strategy in ("fast", "slow")
    ]


def test_the_best_rate_is_that_of_the_most_accurate_trial_of_the_strategy_itself() -> None:
    done = [trial("fast", 0.01, 0.5), trial("fast", 0.02, 0.6), trial("slow", 0.01, 0.9), run("fast", accuracy=1.0)]
    assert best_rate(race(), done, "fast") == 0.02
