"""Training makes a plan on the way, or trains another one with the options of its command."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from backends.data.dataset import Dataset
from planner.errors import PlanError
from planner.json_records import save
from planner.plan.file import Plan
from planner.predict.sample_efficiency import NONE, SampleEfficiency, Source
from planner.train.orders import Options
from planner.train.train import RunCallbacks, TrainRequest, _as_asked, _as_planned, _plan, train
from tests.planner import profiles
from tests.planner.plans import plan, planned

EFFICIENCIES = NONE._replace(
    source=Source("cipher", "fashion-mnist", 3000, 32, 0.7, ("net-a",), (6,), "2026-11-21"),
    measured=(SampleEfficiency("sgp", 1.0, 0.9, 1.1, 3, 0),),
)


@pytest.fixture
def profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four devices that have been profiled, and the sample efficiencies of a race."""
    measured = profiles.profile({name: profiles.device() for name in "abcd"})
    monkeypatch.chdir(tmp_path)
    fleet = SimpleNamespace(path="fleet.toml", trusted_network=False)
    monkeypatch.setattr("planner.train.train.load_fleet", lambda path: fleet)
    monkeypatch.setattr("planner.train.train.Profiler", lambda *_: SimpleNamespace(run=lambda log: measured))
    monkeypatch.setattr("planner.train.train.newest", lambda folder: EFFICIENCIES)


def test_auto_makes_as_many_steps_as_teach_as_much_as_those_asked_for_and_says_why(profiled: None) -> None:
    request = TrainRequest(Path("fleet.toml"), None, "time", "net", 900, None, None, {}, None, Path())
    source: Any = SimpleNamespace(input_shape=(32, 32, 3), classes=10, samples=3000, job=None)
    noted: list[str] = []
    view = RunCallbacks(lambda *_: None, lambda _: None, noted.append, lambda *_: None)
    found = _plan(request, Options("data", strategy="auto"), source, None, view)
    assert (found.strategy.text, found.steps) == ("sgp", 1000)
    assert any("1.11 times the images" in note for note in noted) and any(
        "measured with cipher" in note for note in noted
    )
    noted.clear()
    named = _plan(request, Options("data", strategy="sgp"), source, None, view)
    assert (named.strategy.text, named.steps, noted) == ("sgp", 900, [])


@pytest.mark.parametrize("engine", [None, "planner", "auto"])
def test_a_job_with_its_own_optimizer_is_planned_without_a_server_and_it_is_said(
    profiled: None, monkeypatch: pytest.MonkeyPatch, engine: str | None
) -> None:
    own = profiles.device(profiles.step(1.0, job=True, own_optimizer=True))
    measured = profiles.profile(dict.fromkeys("abcd", own))
    monkeypatch.setattr("planner.train.train.Profiler", lambda *_: SimpleNamespace(run=lambda log: measured))
    request = TrainRequest(Path("fleet.toml"), None, "time", "net", 900, None, None, {}, None, Path())
    source: Any = SimpleNamespace(input_shape=None, classes=None, samples=None, job=None)
    noted: list[str] = []
    view = RunCallbacks(lambda *_: None, lambda _: None, noted.append, lambda *_: None)
    assert _plan(request, Options(engine=engine), source, None, view).strategy.text == "allreduce:optimizer=own"
    assert sum("the job brings its own optimizer" in note for note in noted) == 1


def command(named: Path | None = None, **options: Any) -> TrainRequest:
    return TrainRequest(None, named, None, None, None, None, None, options, None, Path("runs"))


def asked(given: str | None, **options: Any) -> Plan:
    return _as_asked(plan(planned("a"), planned("b")), Options("x", strategy=given, **options), given)


def test_what_a_plan_has_chosen_stands_for_auto_and_for_a_norm_that_was_not_given() -> None:
    made = plan(planned("a"), planned("b"))._replace(engine="torch", clip_norm=0.5)
    found = _as_planned(command(), Options(strategy="auto", engine="auto"), made)
    assert (found.strategy, found.engine, found.clip_norm) == (made.strategy.as_text(), "torch", 0.5)
    asked = Options(strategy="sgp", engine="planner", clip_norm=2.0)
    assert _as_planned(command(), asked, made) == asked


def test_a_strategy_beside_the_engine_auto_is_of_no_account_where_torch_is_better() -> None:
    by_torch = plan(planned("a"), planned("b")).with_engine("torch")
    options = _as_planned(command(), Options(strategy="dlion", engine="auto"), by_torch)
    assert _as_asked(by_torch, options, options.strategy) == by_torch
    with pytest.raises(PlanError, match="--strategy dlion: --engine torch has its own exchange"):
        _as_asked(by_torch, Options(strategy="dlion", engine="torch"), "dlion")


@pytest.mark.parametrize(
    ("typed", "names_plan", "resumed", "of_plan", "expected"),
    [
        (1.0, True, 2.0, 3.0, 1.0),
        (None, True, 2.0, 3.0, 3.0),
        (None, True, 2.0, None, 2.0),
        (None, False, 2.0, 3.0, 2.0),
        (None, False, None, 3.0, 3.0),
        (None, True, None, None, None),
    ],
)
def test_a_norm_is_that_of_the_command_of_its_plan_of_the_run_that_is_resumed_or_of_its_plan(
    typed: float | None, names_plan: bool, resumed: float | None, of_plan: float | None, expected: float | None
) -> None:
    request = command(Path("plan.json") if names_plan else None, **({"clip_norm": typed} if typed else {}))
    options = Options(clip_norm=resumed)._replace(**request.options)
    assert _as_planned(request, options, plan(planned("a"))._replace(clip_norm=of_plan)).clip_norm == expected


@pytest.mark.parametrize(
    ("typed", "names_plan", "resumed", "of_plan", "expected"),
    [
        ("replay:1", True, "replay:2", "replay:3", "replay:1"),
        (None, True, "replay:2", "replay:3", "replay:3"),
        (None, True, "replay:2", None, "replay:2"),
        (None, False, "replay:2", "replay:3", "replay:2"),
        (None, False, None, "replay:3", "replay:3"),
        (None, True, None, None, None),
    ],
)
def test_a_stream_is_that_of_the_command_of_its_plan_of_the_run_that_is_resumed_or_of_its_plan(
    typed: str | None, names_plan: bool, resumed: str | None, of_plan: str | None, expected: str | None
) -> None:
    request = command(Path("plan.json") if names_plan else None, **({"stream": typed} if typed else {}))
    options, made = Options(stream=resumed)._replace(**request.options), plan(planned("a"))._replace(stream=of_plan)
    found = _as_planned(request, options, made)
    assert found.stream == expected
    assert _as_asked(made, found, None).stream == expected


@pytest.mark.parametrize(("stream", "planned_for"), [("replay:30", "replay:30"), ("socket:h:1", None)])
def test_a_plan_that_is_made_before_the_run_knows_the_waits_whose_rates_are_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stream: str, planned_for: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fleet.toml").write_text('[devices.a]\naddress = "local"\n')
    measured = profiles.profile({"a": profiles.device(profiles.step(1.0))})
    monkeypatch.setattr("planner.train.train.Profiler", lambda *_: SimpleNamespace(run=lambda log: measured))
    request = TrainRequest(Path("fleet.toml"), None, "time", "net", 900, None, None, {}, None, Path())
    source: Any = SimpleNamespace(input_shape=None, classes=None, samples=None, job=None)
    view = RunCallbacks(lambda *_: None, lambda _: None, lambda _: None, lambda *_: None)
    assert _plan(request, Options(stream=stream), source, None, view).stream == planned_for


def test_a_norm_that_was_not_planned_has_no_interval_and_another_one_keeps_it() -> None:
    made = plan(planned("a"))._replace(interval=(1.0, 2.0))
    clipped = made._replace(clip_norm=0.5)
    assert _as_asked(made, Options(clip_norm=2.0), None) == made._replace(clip_norm=2.0, interval=())
    assert _as_asked(clipped, Options(clip_norm=2.0), None) == made._replace(clip_norm=2.0)
    assert _as_asked(made, Options(), None) == made


@pytest.mark.parametrize(("planned_norm", "told"), [(None, 1), (0.5, 0)])
def test_that_a_prediction_is_without_clipping_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planned_norm: float | None, told: int
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text("def net(): ...\n")
    Path("fleet.toml").write_text('[devices.a]\naddress = "local"\n')
    made = plan(planned("a"))._replace(model="net.py:net", clip_norm=planned_norm)
    save(made, Path("plan.json"))
    monkeypatch.setattr("planner.train.train.load_dataset", lambda path: IMAGES)
    monkeypatch.setattr("planner.train.train.carry_out", lambda launch, resume: {"norm": launch.plan.clip_norm})
    notes: list[str] = []
    view = RunCallbacks(lambda *_: None, lambda _: None, notes.append, lambda *_: None)
    result, _ = train(command(data="images", clip_norm=2.0), view)
    assert result == {"norm": 2.0}
    expected = "gradients are clipped to a norm of 2, and the prediction is without it"
    assert notes.count(expected) == told


def test_the_optimizer_that_is_asked_for_is_that_of_the_plan_or_of_the_strategy() -> None:
    assert asked(None, optimizer="adam").strategy.text == "parameter-server:optimizer=adam"
    assert asked("sgp:sync=bounded", optimizer="adamw").strategy.text == "sgp:sync=bounded,optimizer=adamw"
    assert asked("sgp:optimizer=lars", optimizer="lars").strategy.text == "sgp:optimizer=lars"
    assert asked(None, engine="torch", optimizer="adam").strategy.text == "allreduce:optimizer=adam"


def test_another_strategy_keeps_the_optimizer_of_the_plan_unless_it_names_one() -> None:
    of_adam = plan(planned("a"), planned("b")).with_optimizer("adam:beta2=0.95")
    found = {text: _as_asked(of_adam, Options("x", strategy=text), text) for text in ("sgp", "sgp:optimizer=sgd")}
    assert found["sgp"].strategy.text == "sgp:optimizer=adam:beta2=0.95"
    assert found["sgp:optimizer=sgd"].strategy.text == "sgp:optimizer=sgd"
    with pytest.raises(PlanError, match="optimizer adam excludes compressor gaia"):
        _as_asked(of_adam, Options("x", strategy="gaia"), "gaia")


def test_an_optimizer_that_does_not_fit_the_strategy_is_refused() -> None:
    with pytest.raises(PlanError, match="--optimizer adam with strategy gaia: optimizer adam excludes compressor gaia"):
        asked("gaia", optimizer="adam")
    with pytest.raises(PlanError, match="the strategy names lars; leave one of them out"):
        asked("sgp:optimizer=lars", optimizer="adam")


IMAGES = Dataset(*(np.zeros((2, 28, 28, 1), np.uint8), np.array([0, 9])) * 2, classes=10)
