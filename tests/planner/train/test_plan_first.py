"""`planner train --metric` makes the plan that it then trains."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.training.run_settings import RunSettings
from planner.errors import PlanError
from planner.json_records import load
from planner.plan.file import Plan
from planner.plan.texts import parse_strategy, parse_stream
from planner.predict.request import RecommendRequest
from planner.predict.sample_efficiency import NONE, SampleEfficiency, Source
from planner.profile.request import ProfileRequest
from planner.train.plan_first import PlanFirst, plan_first
from profilers.records.steps import ComputeSettings
from tests.planner import profiles

EFFICIENCIES = NONE._replace(
    source=Source("cipher", "fashion-mnist", 3000, 32, 0.7, ("net-a",), (6,), "2026-11-21"),
    measured=(SampleEfficiency("sgp", 1.0, 0.9, 1.1, 3, 0),),
)


def first(
    strategy: str | None = None, engine: str | None = None, optimizer: str | None = None, **settings: Any
) -> PlanFirst:
    return PlanFirst(RecommendRequest({"time": 1.0}, RunSettings(**settings), optimizer=optimizer), strategy, engine)


class Planning:
    """Four devices whose profile is known, and the sample efficiencies of a race."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.profile = profiles.profile({name: profiles.device() for name in "abcd"})
        self.notes: list[str] = []
        self.profiled: list[ProfileRequest] = []
        monkeypatch.setattr("planner.train.plan_first.Profiler", self._profiler)
        monkeypatch.setattr("planner.train.plan_first.newest", lambda folder: EFFICIENCIES)

    def _profiler(self, fleet: object, request: ProfileRequest, *_: object, next_wanted: object) -> Any:
        self.profiled.append(request)
        return SimpleNamespace(run=lambda log: self.profile)

    def plan(self, **asked: Any) -> Plan:
        fleet: Any = SimpleNamespace(path="fleet.toml", trusted_network=False)
        data: Any = SimpleNamespace(job=None, samples=None, input_shape=None, classes=None)
        return plan_first(first(model="net", steps=900, **asked), data, fleet, lambda *_: None, self.notes.append)


@pytest.fixture
def planning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planning:
    monkeypatch.chdir(tmp_path)
    return Planning(monkeypatch)


def test_the_plan_that_is_trained_is_also_written(planning: Planning) -> None:
    made = planning.plan(strategy="sgp", clip_norm=0.5, stream=parse_stream("replay:30"), rates_seed=3)
    assert load(Plan, Path("plan.json")) == made
    assert made.run._replace(steps=0, batch=0) == RunSettings(
        "net", strategy=parse_strategy("sgp"), clip_norm=0.5, stream=parse_stream("replay:30"), rates_seed=3
    )


def test_what_the_profile_lacks_is_measured_as_it_will_be_run(planning: Planning) -> None:
    planning.plan(batch=16, compute=ComputeSettings(8, "bf16"))
    (asked,) = planning.profiled
    assert (asked.models, asked.batch, asked.compute) == (("net",), 16, ComputeSettings(8, "bf16"))


def test_auto_makes_as_many_steps_as_teach_as_much_as_those_asked_for_and_says_why(planning: Planning) -> None:
    found = planning.plan(strategy="auto")
    assert (found.run.strategy.text, found.run.steps) == ("sgp", 1000)
    assert any("1.11 times the images" in note for note in planning.notes)
    assert any("measured with cipher" in note for note in planning.notes)
    planning.notes.clear()
    named = planning.plan(strategy="sgp")
    assert (named.run.strategy.text, named.run.steps, planning.notes) == ("sgp", 900, [])


@pytest.mark.parametrize("engine", [None, "planner", "auto"])
def test_a_job_with_its_own_optimizer_is_planned_without_a_server_and_it_is_said(
    planning: Planning, engine: str | None
) -> None:
    own = profiles.device(profiles.step(1.0, job=True, own_optimizer=True))
    planning.profile = profiles.profile(dict.fromkeys("abcd", own))
    assert planning.plan(engine=engine).run.strategy.text == "allreduce:optimizer=own"
    assert sum("the job brings its own optimizer" in note for note in planning.notes) == 1


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"strategy": "layerdrop"}, "--strategy layerdrop: unknown strategy"),
        ({"engine": "torch:hook=fp8"}, "hook is one of none, bf16, fp16, powersgd, not 'fp8'"),
        ({"optimizer": "adagrad"}, "--optimizer adagrad: unknown optimizer"),
    ],
)
def test_a_text_that_names_nothing_is_refused_before_anything_is_measured(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(PlanError, match=told):
        first(**asked).check()


def test_auto_is_a_strategy_and_an_engine() -> None:
    first("auto", "auto").check()
