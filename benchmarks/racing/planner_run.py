"""One run of one of the planner's own strategies, on a fleet that is up."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from backends.jobs.job import ACCURACY
from backends.strategies.sample_streams import draw_rate
from backends.training.run_settings import RunSettings
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.plan.recommend import make_plan, recommend
from planner.plan.recommendation import Recommendation
from planner.plan.texts import parse_strategy, parse_stream
from planner.predict.request import RecommendRequest
from planner.predict.sample_efficiency import Learning
from planner.profile.file import Profile
from planner.provenance import Provenance
from planner.train.orders import Options
from planner.train.start import TrainingRun
from planner.train.train import carry_out
from planner.train.training_data import ShippedImages

from . import curve, final_accuracy
from .efficiency import ALONE
from .live_environment import LiveEnvironment
from .racefile import Race
from .records import Outcome, Setting
from .run_watcher import RunWatcher

#: More steps than any run makes: it ends when its time is over.
STEPS = 1_000_000
#: Seconds over those predicted, at which a run of a number of steps ends anyway.
MOST_LATE = 2.0


def plan_for(strategy: str, live: LiveEnvironment, steps: int = STEPS, stream: str | None = None) -> Plan:
    """All devices of the profile, or the best of them alone.

    Data are dealt out equally, so that all strategies have the same at the same place. Raises
    PlanError.
    """
    plan = _predicted(strategy, live, steps, stream)
    return plan._replace(workers=tuple(worker._replace(steps=1.0) for worker in plan.workers))


def stream_of(live: LiveEnvironment, seed: int) -> str | None:
    """Text of ``--stream`` with the rates that are drawn for the devices; None without streams."""
    if not live.stream_rates:
        return None
    rates = {name: draw_rate(live.stream_rates, name, seed) for name in live.profile.devices}
    return f"replay:{'/'.join(f'{name}@{rate:.1f}' for name, rate in rates.items())}"


def _predicted(strategy: str, live: LiveEnvironment, steps: int, stream: str | None) -> Plan:
    samples = len(live.dataset.train_labels)
    parsed = None if stream is None else parse_stream(stream)
    request = RecommendRequest(
        {"time": 1.0}, RunSettings(steps=steps, stream=parsed), rates=live.rates, learning=Learning(samples)
    )
    ranked, place = ranked_for(strategy, live.profile, request)
    return make_plan(ranked, str(live.fleet.path), place)


def ranked_for(strategy: str, profile: Profile, request: RecommendRequest) -> tuple[Recommendation, int]:
    """A ranking by time, and the place in it of all devices, or of the best of them alone.

    Raises PlanError.
    """
    if strategy != ALONE:
        request = request.setting(strategy=parse_strategy(strategy))._replace(include=tuple(profile.devices))
        return recommend(profile, request), 1
    ranked = recommend(profile, request)
    return ranked, next(at for at in range(1, len(ranked) + 1) if len(ranked.row(at).config.workers) == 1)


def run(setting: Setting, race: Race, live: LiveEnvironment, on_start: Callable[[], None]) -> Outcome:
    """Train for the race's seconds; the run's events stay in its folder. Raises PlannerError."""
    stream, seconds = stream_of(live, setting.seed), race.seconds_in(setting.environment)
    plan = plan_for(setting.strategy, live, stream=stream)
    steps_per_s = sum(1.0 / worker.cycle_s for worker in plan.workers)
    falls = race.schedule != "constant"
    if falls:
        plan = plan_for(setting.strategy, live, round(seconds * steps_per_s), stream)
    server = plan.server if plan.run.strategy.through_server else ""  # its own worker uses no card
    watch = RunWatcher(live.cards, server, on_start)
    options = Options(
        race.data, rate=setting.rate, seed=setting.seed, checkpoint_every=plan.run.steps,
        evaluate_every=max(1, round(race.evaluate_s * steps_per_s)),
        target=f"{ACCURACY}={race.target}" if race.ends_at_target else None, schedule=race.schedule,
    )  # fmt: skip
    folder = RunFolder(live.folder / setting.text.replace("/", "_"))
    shutil.rmtree(folder.path, ignore_errors=True)
    folder.path.mkdir(parents=True)
    few = final_accuracy.thinned(live.dataset, race.test_images)
    result = carry_out(
        TrainingRun(plan, live.fleet, ShippedImages(few), options, folder, watch.on_event, live.agents),
        lasting_s=MOST_LATE * seconds if falls else seconds,
    )
    watch.end()  # at its target; what it handed over then counts as well
    accuracies = final_accuracy.accuracies(folder.checkpoint, plan.run.model, live.dataset)
    folder.checkpoint.unlink()
    # As was planned for STEPS, scaled, would count batches that grow to their full size, which they
    # have no time for.
    predicted_s = _predicted(setting.strategy, live, max(1, result["steps_made"]), stream).prediction.time_s
    return _outcome(plan, result, _events(folder.events), race.target, accuracies, watch, predicted_s)


def _outcome(
    plan: Plan,
    result: dict[str, Any],
    events: list[dict[str, Any]],
    target: float,
    accuracies: dict[str, float],
    watch: RunWatcher,
    predicted_s: float,
) -> Outcome:
    held_up = plan.run.strategy.evaluation_stops_all(len(plan.workers))
    made = {name: worker["steps"] for name, worker in result["workers"].items()}
    points = curve.points(
        events, {name: 1.0 if held_up else steps / sum(made.values()) for name, steps in made.items()}
    )
    workers = [worker for worker in result["workers"].values() if worker["steps"]]
    return Outcome(
        steps=result["steps_made"],
        time_s=result["measured"]["time_s"],
        target_s=curve.reached_s(points, target),
        accuracies=accuracies,
        curve=tuple(points),
        busy_s=_mean(worker["busy_s"] / worker["steps"] for worker in workers),
        exchange_s=_mean(worker["exchange_s"] / worker["steps"] for worker in workers),
        card_bytes=watch.card_bytes,
        traffic=watch.traffic(),
        energy_j=result["measured"]["energy_j"],
        energy_source=Provenance(**result["measured"]["provenance"]).text,
        predicted_s=predicted_s,
    )


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None


def _events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
