"""Images to the target are counted for the runs of a race.

Pure, but for the specs and data that it reads.
"""

from collections.abc import Container, Iterable, Mapping, Sequence

from lab.spec import load_spec

from backends.strategies.strategy import PARAMETER_SERVER, Strategy
from planner.errors import PlannerError
from planner.plan.texts import parse_strategy
from planner.predict.batches import mean_batch
from planner.train.training_data import load_dataset

from .efficiency import ALONE, Reached
from .figures import Entry
from .racefile import Environment, Race
from .records import RACE, Finished, Point


def devices(race: Race) -> dict[str, int]:
    """How many each environment has, all of which take part.

    Raises FleetError for a spec that does not fit.
    """
    return {each.label: len(load_spec(race.path(each.spec)).devices) for each in race.environments}


def reached(runs: Iterable[Finished], race: Race, samples: int, members: Mapping[str, int]) -> list[Reached]:
    """Those of the planner's own strategies and of a device alone that came to something.

    samples: of the training data; members: by environment.
    """
    return [_reached(run, race, samples, members) for run in runs if _counts(run, race, members)]


def is_of(race: Race, environment: Environment, entry: Entry) -> bool:
    """Whether it was made there, or by a device alone where its runs count for there as well."""
    at = environment.alone_in if entry.strategy == ALONE and environment.alone_in else environment.label
    return (entry.race, entry.environment) == (race.name, at)


def training_samples(race: Race) -> int:
    """How many images its data have to train on. Raises PlannerError."""
    return len(load_dataset(str(race.path(race.data))).train_labels)


def as_planned(name: str) -> Strategy:
    """The strategy of a plan for one of a race."""
    return PARAMETER_SERVER if name == ALONE else parse_strategy(name)


def _counts(run: Finished, race: Race, environments: Container[str]) -> bool:
    if (run.setting.race, run.setting.purpose) != (race.name, RACE) or run.outcome is None:
        return False
    if run.setting.environment not in environments:  # of an earlier version of the race file
        return False
    try:
        planned = as_planned(run.setting.strategy)
    except PlannerError:  # somebody else's
        return False
    return planned.batching != "stream"  # batches depend on the devices


def _reached(run: Finished, race: Race, samples: int, members: Mapping[str, int]) -> Reached:
    assert run.outcome is not None
    name, steps = run.setting.strategy, steps_to(run.outcome.curve, race.target)
    n = 1 if name == ALONE else members[run.setting.environment]
    images = None
    if steps is not None:
        images = steps * mean_batch(as_planned(name), n, race.batch, samples, rounds=steps / n)
    return Reached(run.setting.environment, run.setting.seed, name, n, images)


def steps_to(curve: Sequence[Point], target: float) -> float | None:
    """Interpolated between the evaluations around the target; None where none reached it."""
    step, accuracy = 0, 0.0
    for point in curve:
        if point.accuracy >= target:
            return step + (target - accuracy) / (point.accuracy - accuracy) * (point.step - step)
        step, accuracy = point.step, point.accuracy
    return None
