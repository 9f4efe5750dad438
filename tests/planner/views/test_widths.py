"""Every table is readable on terminals of 60 to 200 columns, and complete in a pipe, whatever its
devices are called.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import RenderableType

from backends.protocol.events import CacheEntry, Evaluated
from planner.audit.outcome import Outcome, verdict
from planner.check.findings import CHECKS, CheckReport, Finding
from planner.clean import Cache
from planner.paths import RunFolder
from planner.plan.recommend import recommend
from planner.power.fit import Evaluation, Fit
from planner.power.measure import EnergyMeasurement
from planner.profile.file import Profile
from planner.profile.power_readings import WindowWatts
from planner.provenance import Provenance
from planner.runs.comparison import compare
from planner.runs.summary import FINISHED, PlannedRun, RunCosts, RunSummary, RunTarget
from planner.views import audit, check, clean, models, power, profile, ranking, runs, trained
from planner.views.training import TrainingProgress
from power_models.base import PowerModel, Range
from power_models.columns import Choice
from power_models.evaluate import ModelScores
from power_models.linear import Mean
from power_models.registry import MODELS
from profilers.records.json_values import json_value
from tests.planner import profiles
from tests.planner.plans import plan, planned
from tests.planner.requests import asked
from tests.planner.screens import WIDTHS, shown

#: As people name their boards, and as nobody should.
NAMES = ("tx2", "jetson-xavier-nx-workshop-2", "raspberry-pi-4-with-a-name-that-fills-half-of-the-whole-terminal")
PATH = Path("a-folder/with-a-long-name/profile-of-the-workshop-2026-11-23.json")
EMULATED = Provenance("sensor", ("module",), True, "slowdown 4, at the measured busy share")


def fleet() -> Profile:
    steps_s = (3.4e-7, 0.4, 123_456.0)
    devices = {
        name: profiles.device(profiles.step(step_s, slowdown=4.0, spread=0.1))
        for name, step_s in zip(NAMES, steps_s, strict=True)
    }
    return profiles.profile(devices)


def checked(verbose: bool) -> RenderableType:
    long = "libcudart.so.10.2: cannot open shared object file: No such file or directory (needed by libtorch_cuda.so)"
    findings = [Finding(name, each, "ok", "3.6.9") for name in NAMES for each in CHECKS]
    findings[-3] = Finding(NAMES[-1], "clock", "failed", long, "set its clock: sudo timedatectl set-ntp true")
    return check.render(CheckReport(tuple(findings)), verbose)


def ranked(verbose: bool) -> RenderableType:
    return ranking.render(recommend(fleet(), asked({"edp": 1.0})), 0, PATH, verbose=verbose)


def scored() -> RenderableType:
    ranked = recommend(fleet(), asked({"edp": 1.0}))
    outcomes = [
        Outcome(
            place, NAMES[0], NAMES[:place], "ring, rounds", NAMES[1:], 1234.5, 99.5, 1200.0 - place, failure=failure
        )
        for place, failure in enumerate(("", "the device was lost"), 1)
    ]
    return audit.render(ranked, outcomes, verdict(outcomes, ranked.weights))


def running() -> RenderableType:
    from rich.live import Live

    from planner import console

    progress = TrainingProgress(Live(console=console.plain(stderr=True), auto_refresh=False))
    progress.on_plan(plan(*map(planned, NAMES)))
    worker = {"steps": 123_456_789, "loss": 1e-12, "staleness": 3.0, "bytes": 10**15, "connected": False}
    at = {"done": 8, "total": 10**9, "elapsed_s": 2e5, "workers": dict.fromkeys(NAMES, worker)}
    progress.on_event("server", {"progress": at})
    return progress.live.get_renderable()


def at_the_end(verbose: bool) -> RenderableType:
    part = {
        "steps": 123_456_789, "predicted_steps": 99.6, "busy_s": 2e5, "exchange_s": 1e-5, "watts": 1234.5,
        "provenance": json_value(EMULATED), "watts_error": 0.01, "framework": "torch",
    }  # fmt: skip
    figures = {
        "time_s": 2e5, "power_w": 1234.5, "energy_j": 2.5e8, "edp_js": 5e13, "energy_uncertainty": 3.5,
        "provenance": json_value(EMULATED),
    }  # fmt: skip
    error = dict.fromkeys(("time_s", "power_w", "energy_j", "edp_js"), -0.9951)
    return trained.render(
        {
            "model": "path/to/a/model.py:function", "steps": 10**9, "predicted": figures, "measured": figures,
            "error": error, "workers": dict.fromkeys(NAMES, part), "notes": ["a note"],
            "evaluations": [
                {"step": step, "loss": 1.0, "metrics": {"accuracy": 0.5}} for step in range(0, 10**6, 25_000)
            ],
        },
        RunFolder(Path("runs/2026-11-23T12-00-00-model")),
        verbose,
    )  # fmt: skip


def energy() -> RenderableType:
    watts = WindowWatts(1234.5, 0.5, EMULATED)
    return power.measurement(EnergyMeasurement(NAMES[-1], ("python3", "bench.py"), 0, 2e5, watts, watts, ("a note",)))


def fitted() -> Fit:
    """Watts by columns with long names, of which one is constant and one an outcome."""
    mean = Mean(123.4)
    ranges = (Range("memory_clock_of_the_accelerator_MHz", 405.0, 9_501.0, ()), Range("network", np.nan, np.nan, NAMES))
    constants = (Range("nodes", 1.0, 1.0, ()),)
    model = PowerModel(
        regressor=mean, target="average_power", rows=123_456, ranges=ranges, least=9.0, greatest=999.0,
        width=0.1, constants=constants,
    )  # fmt: skip
    scores = [ModelScores(name, 123.456, 45.6, 1234.5, 99.9, 0.9, 0.55, 1.0) for name in MODELS]
    choice = Choice(model.features, {"time_per_epoch_in_seconds": "seems to be an outcome of the run"})
    refused = {"physical": "there is no column of clocks (named frequency, clock, MHz or F) that changes"}
    return Fit(scores, refused, choice, ("dataset", "network"), 10, model, PATH)


def evaluated() -> Evaluation:
    outside = {line: ("nodes", *fitted().model.features) for line in range(2, 12)}
    return Evaluation(fitted().model, 123_456, 123.456, 1234.5, 0.55, outside)


def earlier_runs() -> list[RunSummary]:
    figures = RunCosts(2e5, 1234.5, 2.5e8, 5e13)
    run = RunSummary(
        str(PATH), "2026-11-23T12-00-00-model", "2026-11-23T12:00:00", FINISHED, "",
        PlannedRun(
            "path/to/a/model.py:function", NAMES[0], NAMES, "baseline:compressor=top-k:share=0.01", "planner", 10**9
        ), 10**9, figures, figures,
        Evaluated(10**9, NAMES[0], 1e-12, {"accuracy": 0.5, "mean_absolute_error": 0.5}, 1.0),
        RunTarget("mean_absolute_error", 0.5, True, 10**9), NAMES, {"server": NAMES[0]},
    )  # fmt: skip
    return [run, run._replace(state="damaged", reason="result.json: not JSON", settings={"server": NAMES[1]})]


def left_over() -> RenderableType:
    names = ("project-0123456789abcdef", "file-" + 64 * "a", "file-" + 64 * "b", "data-0123456789abcdef.npz")
    entries = (CacheEntry(name, name.partition("-")[0], 10**11, 1e7, "data" in name) for name in names)
    return clean.render([Cache(("this machine", *NAMES), str(PATH), tuple(entries))])


SCREENS = {
    "check": lambda: checked(False),
    "check --verbose": lambda: checked(True),
    "models": models.render,
    "profile": lambda: profile.render(fleet(), PATH),
    "profile --verbose": lambda: profile.render(fleet(), PATH, verbose=True),
    "recommend": lambda: ranked(False),
    "recommend --verbose": lambda: ranked(True),
    "train, while it runs": running,
    "train": lambda: at_the_end(False),
    "train --verbose": lambda: at_the_end(True),
    "runs": lambda: runs.render(earlier_runs()),
    "runs --compare": lambda: runs.render_comparison(compare(earlier_runs())),
    "clean": left_over,
    "audit": scored,
    "power measure": energy,
    "power fit": lambda: power.fit(fitted()),
    "power evaluate": lambda: power.evaluation(evaluated()),
    "power models": lambda: power.kinds({name: kind.summary for name, kind in MODELS.items()}, {}),
}
screens = pytest.mark.parametrize("screen", SCREENS)


@screens
@pytest.mark.parametrize("width", (60, *WIDTHS))
def test_on_a_terminal_no_line_is_too_long_and_no_word_is_cut(screen: str, width: int) -> None:
    text = shown(SCREENS[screen](), width)
    assert "…" not in text
    complete = shown(SCREENS[screen]())
    names = [name for name in NAMES if name in complete]
    assert all(name in "".join(text.split()) for name in names)


@screens
def test_in_a_pipe_each_row_is_one_line_of_any_length_and_nothing_is_left_out(screen: str) -> None:
    text = shown(SCREENS[screen]())
    assert "not shown:" not in text
    assert not re.search(r" $", text, re.MULTILINE)


@screens
def test_what_a_narrow_terminal_leaves_out_is_named(screen: str) -> None:
    narrow, complete = shown(SCREENS[screen](), 80), shown(SCREENS[screen]())
    headers = [
        line for line, rule in zip(complete.splitlines(), complete.splitlines()[1:], strict=False) if "──" in rule
    ]
    assert headers
    for title in (title for header in headers for title in re.split(r"  +", header.strip())):
        assert "".join(title.split()) in "".join(narrow.split())
