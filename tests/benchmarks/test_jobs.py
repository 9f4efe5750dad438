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


def test_a_strategy_of_several_environments_is_tuned_once_and_in_one_of_them() -> None:
    assert all(each.environment == "here" for each in trials(race(tune_in="here")))
    assert len(list(trials(race()))) == 4


def test_a_single_rate_needs_no_trials() -> None:
    assert list(trials(race(rates=(0.05,)))) == []
    assert {each.rate for each in _all(race(rates=(0.05,)))} == {0.05}


def test_a_strategy_whose_rate_is_known_tries_none() -> None:
    known = race(rate_of={"slow": 0.3})
    assert {each.strategy for each in trials(known)} == {"fast"}
    assert best_rate(known, [trial("slow", 0.01, 0.9)], "slow") == 0.3


def test_strategies_take_turns_and_all_environments_come_before_the_next_seed() -> None:
    races = [(each.seed, each.environment, each.strategy) for each in _all(race(rates=(0.05,)))]
    assert races == [
        (seed, environment, strategy)
        for seed in (0, 1)
        for environment in ("here", "there")
        for strategy in ("fast", "slow")
    ]


def test_an_environment_may_have_fewer_seeds_or_more_of_its_own() -> None:
    here, there = race().environments
    one_race = race(rates=(0.05,))._replace(environments=(here._replace(seeds=1), there._replace(seeds=3)))
    seeds = {(each.environment, each.seed) for each in _all(one_race)}
    assert seeds == {("here", 0), *(("there", seed) for seed in range(3))}


def test_what_is_done_is_not_done_again_also_where_it_failed() -> None:
    done = [failed("fast", TUNING, 0.01), trial("slow", 0.01, 0.5)]
    assert [each for each in _all(race(), done) if each.purpose == TUNING] == [
        Setting("test", TUNING, "here", strategy, 0, 0.02) for strategy in ("fast", "slow")
    ]


def test_a_race_that_is_done_leaves_nothing_to_do() -> None:
    done = [Finished(setting, 0.0, 0.0, outcome()) for setting in _all(race())]
    assert next_job(race(), done) is None


def test_the_best_rate_is_that_of_the_most_accurate_trial_of_the_strategy_itself() -> None:
    done = [trial("fast", 0.01, 0.5), trial("fast", 0.02, 0.6), trial("slow", 0.01, 0.9), run("fast", accuracy=1.0)]
    assert best_rate(race(), done, "fast") == 0.02


def test_where_runs_end_at_the_target_the_best_rate_is_that_of_the_first_one_there() -> None:
    def reached(rate, target_s, accuracy):
        finished = trial("fast", rate, accuracy)
        return finished._replace(outcome=finished.outcome._replace(target_s=target_s))

    ended = race(ends_at_target=True)
    done = [reached(0.01, 9.0, 0.8), reached(0.02, 7.0, 0.7), reached(0.04, None, 0.9)]
    assert best_rate(ended, done, "fast") == 0.02
    assert best_rate(ended, [reached(0.01, None, 0.6), reached(0.02, None, 0.7)], "fast") == 0.02


def test_a_rate_that_made_training_diverge_is_not_chosen() -> None:
    assert best_rate(race(), [trial("fast", 0.01, 0.2), failed("fast", TUNING, 0.02)], "fast") == 0.01


def test_where_every_trial_failed_the_smallest_rate_is_raced() -> None:
    done = [failed("fast", TUNING, rate) for rate in (0.02, 0.01)]
    assert best_rate(race(), done, "fast") == 0.01
