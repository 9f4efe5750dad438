"""From a request to a run: what is planned on the way, and which checkpoints a run can go on from."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from backends.frameworks.base import Variable
from backends.training import checkpoint
from backends.training.layout import Layout
from planner.errors import PlanError
from planner.paths import RunFolder
from planner.predict.sample_efficiency import NONE, SampleEfficiency, Source
from planner.train.orders import Options
from planner.train.train import Request, View, _check_checkpoint, _plan
from tests.planner import profiles
from tests.planner.plans import plan, planned

WORTHS = NONE._replace(
    source=Source("cipher", "fashion-mnist", 3000, 32, 0.7, ("net-a",), (6,), "2026-11-21"),
    measured=(SampleEfficiency("sgp", 1.0, 0.9, 1.1, 3, 0),),
)


@pytest.fixture
def profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four devices that have been profiled, and what a race told."""
    measured = profiles.profile({name: profiles.device() for name in "abcd"})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("planner.train.train.load_fleet", lambda path: SimpleNamespace(path=path))
    monkeypatch.setattr("planner.train.train.Profiler", lambda *_: SimpleNamespace(run=lambda log: measured))
    monkeypatch.setattr("planner.train.train.newest", lambda folder: WORTHS)


def test_auto_makes_as_many_steps_as_teach_as_much_as_those_asked_for_and_says_why(profiled: None) -> None:
    request = Request(Path("fleet.toml"), None, "time", "net", 900, None, None, {}, None, Path())
    dataset = SimpleNamespace(input_shape=(32, 32, 3), classes=10, train_labels=range(3000))
    told: list[str] = []
    view = View(lambda *_: None, lambda _: None, told.append, lambda *_: None)
    found = _plan(request, Options("data", strategy="auto"), dataset, None, view)
    assert (found.strategy.text, found.steps) == ("sgp", 1000)
    assert any("1.11 times the images" in note for note in told) and any(
        "measured with cipher" in note for note in told
    )
    told.clear()
    named = _plan(request, Options("data", strategy="sgp"), dataset, None, view)
    assert (named.strategy.text, named.steps, told) == ("sgp", 900, [])


def saved(folder: Path, step: int, *evaluated: int, model: str = "net") -> RunFolder:
    one = np.ones(1, np.float32)
    evaluations = [{"step": each} for each in evaluated]
    meta = {"model": model, "framework": "torch", "step": step, "evaluations": evaluations}
    variables = (Variable("w", (1,), 0, 1),)
    content = checkpoint.Checkpoint(one, one, np.empty(0, np.float32), meta)
    run = RunFolder(folder)
    checkpoint.write(str(run.checkpoint), content, Layout(variables, ()))
    return run


@pytest.mark.parametrize(("step", "evaluated"), [(60, ()), (60, (50,)), (100, ()), (100, (50,))])
def test_steps_or_the_last_evaluation_are_left(tmp_path: Path, step: int, evaluated: tuple[int, ...]) -> None:
    _check_checkpoint(plan(planned("a"), steps=100), saved(tmp_path, step, *evaluated))


@pytest.mark.parametrize(("step", "evaluated"), [(100, (50, 100)), (120, (100,)), (120, ())])
def test_nothing_is_left(tmp_path: Path, step: int, evaluated: tuple[int, ...]) -> None:
    with pytest.raises(PlanError, match=f"all its {step} steps; give more with --steps"):
        _check_checkpoint(plan(planned("a"), steps=100), saved(tmp_path, step, *evaluated))


def test_a_known_model_goes_on_in_another_framework_and_a_model_of_the_users_own_does_not(tmp_path: Path) -> None:
    other = plan(planned("a"), steps=100)._replace(framework="tensorflow")
    _check_checkpoint(other, saved(tmp_path, 60))
    own = saved(tmp_path, 60, model="net.py:net")
    _check_checkpoint(plan(planned("a"), steps=100)._replace(model="net.py:net"), own)
    with pytest.raises(PlanError, match="net.py:net in torch, the plan computes with tensorflow; .*--framework torch"):
        _check_checkpoint(other._replace(model="net.py:net"), own)
