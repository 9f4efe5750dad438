"""`--strategy auto` is compared with the best strategy of a race in every environment.

    python benchmarks/auto.py benchmarks/racing/dlion.toml [MORE.toml ...] --out race

From the profiles and results that race.py left in OUT: what all the devices of an environment are
predicted to need to the target with each of its strategies, or the best device alone; the one that
is predicted to be first, beside the one that was. `told`: what images are worth is from all
environments; `untold`: from all others, whatever nobody else raced being no candidate. Of rounds of
local steps it is what comes with the program, from runs without a network. `of all`: what `auto`
chooses among all candidates, raced or not, and how many devices. predicted: seconds of
the chosen one for the steps that a device alone needed in that race. Seconds are
means over seeds; who missed the target once has none. over best: geometric mean over seeds of its
seconds over the best one's, with its 95 % interval; where that holds 1, seeds do not tell the two
apart.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lab.spec import load_spec
from racing import figures, images, records
from racing.efficiency import ALONE, Reached, critical_batch, measured
from racing.figures import Entry, times_as_long
from racing.live_environment import other_rates, profile_path
from racing.planner_run import ranked_for
from racing.racefile import Environment, Race, load
from reporting import parser, show

from backends.training.run_settings import RunSettings
from planner.errors import PlannerError
from planner.json_records import load as load_record
from planner.plan.strategy_search import EQUAL, Candidate, best_strategy, candidates
from planner.plan.texts import AUTO
from planner.predict.request import RecommendRequest
from planner.predict.sample_efficiency import NONE, REMEDY, SHIPPED, Learning, SampleEfficiencies
from planner.profile.file import Profile, load_profile

#: Steps of a device alone where none was raced: how many matters little but to batches that grow.
STEPS = 200


class Place(NamedTuple):
    """One environment, its training samples and the strategies that always reach the target.

    steps: that a device alone needed on average, in all environments of the race.
    """

    race: Race
    environment: Environment
    samples: int
    steps: int
    reached: dict[str, Entry]

    @property
    def name(self) -> str:
        """Of the race and the environment, for races may use the same labels."""
        return _place(self.race, self.environment.label)

    @property
    def seconds(self) -> dict[str, float]:
        """To the target, means over seeds."""
        return {name: each.target_s.value for name, each in self.reached.items() if each.target_s is not None}

    def over_best(self, strategy: str, best: str) -> str | None:
        """Its seconds over those of the best one, seed by seed."""
        if strategy == best or strategy not in self.reached:
            return None
        return str(times_as_long(self.reached[strategy], self.reached[best]))


def _place(race: Race, label: str) -> str:
    return f"{race.name}: {label}"


def main() -> None:
    options = _arguments()
    try:
        rows = _rows([load(path) for path in options.races], options.out)
    except PlannerError as error:
        sys.exit(str(error))
    if not rows:
        sys.exit("no run reached its target; name other races, or another folder")
    show("Chosen, beside the best", rows, options.json)


def _arguments() -> argparse.Namespace:
    made = parser(__doc__)
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument("races", type=Path, nargs="+")
    made.add_argument("--out", type=Path, default=Path("race"), help="folder of results and profiles")
    return made.parse_args()


def _rows(races: Sequence[Race], out: Path) -> list[dict[str, Any]]:
    runs = records.read(out / "results.jsonl")
    entries = figures.entries(runs)
    reached: list[Reached] = []
    places = []
    for race in races:
        samples = images.training_samples(race)
        labels = images.reached(runs, race, samples, images.devices(race))
        own = [run._replace(environment=_place(race, run.environment)) for run in labels]
        reached += own
        ours = {run.strategy for run in own}
        alone = [run.images / race.batch for run in own if run.strategy == ALONE and run.images is not None]
        steps = round(statistics.fmean(alone)) if alone else STEPS
        for environment in race.environments:
            there = [each for each in entries if images.is_of(race, environment, each)]
            got_there = {each.strategy: each for each in there if each.strategy in ours and each.target_s is not None}
            if got_there:
                places.append(Place(race, environment, samples, steps, got_there))
    return [_row(place, reached, out) for place in places]


def _row(place: Place, reached: Sequence[Reached], out: Path) -> dict[str, Any]:
    best = min(place.seconds, key=place.seconds.__getitem__)
    told, told_s = _chosen(place, reached, out)
    untold, _ = _chosen(place, [run for run in reached if run.environment != place.name], out)
    reached_s = place.seconds.get(told)
    return {
        "environment": place.name,
        "best": best,
        "s": place.seconds[best],
        "told": told,
        "told s": reached_s,
        "predicted / told": told_s / reached_s if reached_s else None,
        "told over best": place.over_best(told, best),
        "untold": untold,
        "untold s": place.seconds.get(untold),
        "untold over best": place.over_best(untold, best),
        "of all": _of_all(place, out),
    }


def _of_all(place: Place, out: Path) -> str:
    """What `--strategy auto` chooses there among all, by what comes with the program."""
    profile, rates = _profiled(place, out)
    known = load_record(SampleEfficiencies, SHIPPED, REMEDY)
    request = RecommendRequest(
        {"time": 1.0}, RunSettings(steps=place.steps), rates=rates, learning=Learning(place.samples)
    )
    best = best_strategy(profile, request, AUTO, known)
    workers = len(best.row(1).config.workers)
    return ALONE if workers == 1 else f"{best.inputs_at(1).strategy.text} ({workers})"


def _profiled(place: Place, out: Path) -> tuple[Profile, dict[str, float]]:
    """The profile of a place, and the rates that its links have instead."""
    race, environment = place.race, place.environment
    spec, profiled = (load_spec(race.path(at)) for at in (environment.spec, environment.profiled or environment.spec))
    return load_profile(profile_path(out, race, profiled)), other_rates(profiled, spec)


def _chosen(place: Place, reached: Sequence[Reached], out: Path) -> tuple[str, float]:
    """The strategy predicted to be first, of those that this race has there, and its seconds."""
    race, environment = place.race, place.environment
    profile, rates = _profiled(place, out)
    always = tuple(each for each in measured(reached, EQUAL) if not each.missed)
    known = NONE._replace(
        measured=always,
        critical_batch=critical_batch(reached, EQUAL, race.batch),
        rounds=load_record(SampleEfficiencies, SHIPPED, REMEDY).rounds,
    )
    request = RecommendRequest(
        {"time": 1.0}, RunSettings(steps=place.steps), rates=rates,
        learning=Learning(place.samples, critical_batch=known.synchronous.images),
    )  # fmt: skip
    seconds: dict[str, float] = {}
    for name, text, efficiencies in _raced(candidates(known), (*environment.strategies, *place.reached)):
        ranked, at = ranked_for(text, profile, request._replace(learning=request.learning._replace(**efficiencies)))
        seconds[name] = min(ranked.row(at).prediction.time_s, seconds.get(name, math.inf))
    chosen = min(seconds, key=seconds.__getitem__, default="none")
    return chosen, seconds.get(chosen, math.nan)


def _raced(found: Sequence[Candidate], names: Sequence[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Candidates that were raced: name there, text, and what their images are worth."""
    for each in found:
        name = each.name if each.rounds_efficiency else each.strategy.text
        if name in names:
            worth = {"sample_efficiency": each.sample_efficiency, "rounds": each.rounds_efficiency}
            yield name, each.strategy.text, worth
    if ALONE in names:
        yield ALONE, ALONE, {"sample_efficiency": 1.0}


if __name__ == "__main__":
    main()
