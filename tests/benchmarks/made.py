"""Races and runs made up for tests."""

from benchmarks.racing.racefile import Environment, Race
from benchmarks.racing.records import RACE, TUNING, Finished, Outcome, Setting, Traffic


def race(**changes: object) -> Race:
    """Two strategies in two environments, two seeds, two rates."""
    environments = tuple(Environment(label, f"{label}.toml", ("fast", "slow")) for label in ("here", "there"))
    made = Race("/races/test.toml", "net", "images", 32, 20.0, 2.0, 100, 0.7, 2, (0.01, 0.02), "here", environments)
    return made._replace(**changes)


def outcome(accuracy: float = 0.8, **changes: object) -> Outcome:
    """100 steps in 20 s, the target reached after 10 s."""
    return Outcome(100, 20.0, 10.0, {"all": accuracy}, ())._replace(**changes)


def trial(strategy: str, rate: float, accuracy: float) -> Finished:
    return Finished(Setting("test", TUNING, "here", strategy, 0, rate), 0.0, 0.1, outcome(accuracy))


def run(strategy: str, seed: int = 0, environment: str = "here", **changes: object) -> Finished:
    return Finished(Setting("test", RACE, environment, strategy, seed, 0.01), 0.0, 0.1, outcome(**changes))


def failed(strategy: str, purpose: str = RACE, rate: float = 0.01) -> Finished:
    return Finished(Setting("test", purpose, "here", strategy, 0, rate), 0.0, 0.1, None, "training diverged")


TRAFFIC = Traffic(10.0, 1000.0, 1030, 0.93)
