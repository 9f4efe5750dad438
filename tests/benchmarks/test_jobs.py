"""Which run of a race comes next."""

from benchmarks.racing.jobs import next_job
from benchmarks.racing.records import TUNING, Finished, Setting

from .made import failed, outcome, race, trial


def _all(one_race, done=()):
    """What is run one after the other, every run taking its place among what is done."""
    found, runs = [], list(done)
    while (setting := next_job(one_race, runs)) is not None:
        found.append(setting)
        runs.append(Finished(setting, 0.0, 0.0, outcome()))
    return found


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
