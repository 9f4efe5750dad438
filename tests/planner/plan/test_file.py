"""plan.json is written and read again."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from planner import json_records
from planner.errors import PlannerError, RecordError
from planner.plan.file import Plan, load_plan
from planner.plan.recommend import make_plan, recommend
from planner.profile.file import Profile
from planner.train.data_division import DataDivision
from profilers.records.json_values import json_value
from tests.mutations import MUTATIONS, mutated, written
from tests.planner import profiles
from tests.planner.plans import NAMEPLATE
from tests.planner.requests import asked

EDP = asked({"edp": 1.0})


def fleet() -> Profile:
    return profiles.fleet(0.5, 0.6, spread=0.02)


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    plan = make_plan(recommend(fleet(), EDP.setting(steps=500)), "fleet.toml")
    json_records.save(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan
    assert sum(worker.steps for worker in plan.workers) == pytest.approx(500)
    assert plan.server in {worker.name for worker in plan.workers}
    assert plan.interval[0] <= plan.prediction.edp_js <= plan.interval[1]
    assert {worker.watts.source for worker in plan.workers} == {NAMEPLATE}


def test_a_plan_of_unknown_watts_can_be_written(tmp_path: Path) -> None:
    unknown = profiles.profile({name: profiles.device(idle_w=None) for name in "ab"})
    plan = make_plan(recommend(unknown, asked()), "fleet.toml")
    json_records.save(plan, tmp_path / "plan.json")
    loaded: Plan = load_plan(tmp_path / "plan.json")
    assert loaded.prediction.power_w is None
    assert loaded.workers[0].watts.power_w is None


def test_a_broken_plan_names_the_command_that_mends_it(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"schema": 1}')
    with pytest.raises(RecordError, match="missing 'fleet'.*run `planner recommend`"):
        load_plan(tmp_path / "plan.json")


WHOLE = json_value(make_plan(recommend(fleet(), EDP.setting(steps=500)), "fleet.toml"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"workers": []}, "workers: expected at least one, found []"),
        ({"server": "c"}, "server: expected one of the workers (a, b), found 'c'"),
        ({"workers": [WHOLE["workers"][0]] * 2}, "workers: 'a' is there twice"),
        ({"run": {**WHOLE["run"], "steps": 0}}, "run.steps: expected a whole number from 1 on, found 0"),
        ({"run": {**WHOLE["run"], "batch": 0}}, "run.batch: expected a whole number from 1 on, found 0"),
        ({"prediction": {"time_s": float("inf"), "power_w": None}}, "Infinity is not a JSON number"),
        ({"prediction": {"time_s": -1, "power_w": None}}, "prediction.time_s: expected a number from 0 on, found -1"),
        ({"interval": [2.0, 1.0]}, "interval: expected two numbers, the lower one first, found [2.0, 1.0]"),
        ({"run": {**WHOLE["run"], "engine": "mpi"}}, "run.engine: unknown engine"),
        ({"run": {**WHOLE["run"], "strategy": {"a": 1}}}, "run.strategy: expected a text"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_a_plan_whose_parts_do_not_fit_is_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({**WHOLE, **change}))
    with pytest.raises(RecordError, match="plan.json: ") as refused:
        load_plan(tmp_path / "plan.json")
    assert told in str(refused.value)


@MUTATIONS
@given(mutated(WHOLE))
def test_a_damaged_plan_is_refused_or_can_be_carried_out(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated-plan.json"
    path.write_text(written(value))
    with suppress(PlannerError):
        plan = load_plan(path).for_steps(1000)
        DataDivision("iid", 0, {worker.name: worker.steps for worker in plan.workers}).parts()
