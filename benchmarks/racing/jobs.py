"""Which run comes next. Pure."""

import math
from collections.abc import Iterator, Sequence

from .racefile import Race
from .records import RACE, TUNING, Finished, Outcome, Setting


def trials(race: Race) -> Iterator[Setting]:
    """Every strategy with every rate, taking turns; none where there is nothing to choose from."""
    strategies = dict.fromkeys(name for environment in race.environments for name in environment.strategies)
    for rate in race.rates if len(race.rates) > 1 else ():
        for strategy in (name for name in strategies if name not in race.rate_of):
            yield Setting(race.name, TUNING, race.tune_in, strategy, 0, rate)


def next_job(race: Race, done: Sequence[Finished]) -> Setting | None:
    """The first missing run: trials, then all environments with one seed after the other.

    Strategies take turns within a seed, so that the machine's drift falls on all alike.
    """
    made = {run.setting for run in done}
    for setting in trials(race):
        if setting not in made:
            return setting
    for seed in range(max(each.seeds or race.seeds for each in race.environments)):
        for environment in race.environments:
            for strategy in environment.strategies if seed < (environment.seeds or race.seeds) else ():
                rate = best_rate(race, done, strategy)
                setting = Setting(race.name, RACE, environment.label, strategy, seed, rate)
                if setting not in made:
                    return setting
    return None


def best_rate(race: Race, done: Sequence[Finished], strategy: str) -> float:
    """The known one, else that of its best trial; the smallest where all have failed.

    The best trial is the most accurate one; where runs end at the target, the first one there.
    """
    if strategy in race.rate_of:
        return race.rate_of[strategy]
    found = {
        run.setting.rate: _merit(race, run.outcome)
        for run in done
        if run.outcome is not None and run.setting._replace(rate=0.0) == _trial(race, strategy)
    }
    return max(found, key=lambda rate: found[rate]) if found else min(race.rates)


def _merit(race: Race, outcome: Outcome) -> tuple[float, float]:
    reached_s = outcome.target_s if race.ends_at_target else None
    return (-math.inf if reached_s is None else -reached_s, outcome.accuracy)


def _trial(race: Race, strategy: str) -> Setting:
    return Setting(race.name, TUNING, race.tune_in, strategy, 0, 0.0)
