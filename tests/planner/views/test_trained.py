"""What a run has trained: a sentence, measured beside predicted, and what matters of it."""

from pathlib import Path
from typing import Any

import pytest

from planner.errors import RunError
from planner.paths import RunFolder
from planner.provenance import Provenance
from planner.views import trained
from profilers.records.json_values import json_value
from tests.planner.plans import NAMEPLATE
from tests.planner.screens import WIDTHS, row, shown

WIDE = pytest.mark.parametrize("width", WIDTHS)
PATH = Path("runs/x")
WALL = Provenance("sensor", ("wall",))
EMULATED = NAMEPLATE._replace(emulated=True, detail="slowdown 4")


def result(power_w: float | None = 90.0, source: Provenance = WALL) -> dict[str, Any]:
    part = {
        "steps": 100, "predicted_steps": 99.6, "busy_s": 80.0, "exchange_s": 5.0, "watts": power_w,
        "provenance": json_value(source), "watts_error": 0.01, "framework": "torch",
    }  # fmt: skip
    figures = {
        "time_s": 100.0, "power_w": power_w, "energy_j": None, "edp_js": None, "energy_uncertainty": 0.0196,
        "provenance": json_value(source),
    }  # fmt: skip
    error = {"time_s": -0.0512, "power_w": None, "energy_j": None, "edp_js": None}
    return {
        "model": "net", "steps": 100, "predicted": figures, "measured": figures, "error": error,
        "workers": {"a": part}, "notes": ["a: a note"],
        "evaluations": [
            {"step": 50, "loss": 1.5, "metrics": {"accuracy": 0.4}},
            {"step": 100, "loss": 1.0, "metrics": {"accuracy": 0.5}},
        ],
    }  # fmt: skip


@WIDE
def test_the_labels_of_each_device_are_shown(width: int) -> None:
    many = {str(label): 10 + label for label in range(20)}
    held = {"partition": "labels=20", "labels": {"a": {"3": 1200}, "b": many}}
    text = shown(trained.render({**result(), "partition": held}, RunFolder(PATH), verbose=True), width)
    assert "data by --partition labels=20" in text
    assert "3: 1,200" in text and "390" in text and "12 more" in text
    assert "data by" not in shown(trained.render(result(), RunFolder(PATH), verbose=True), width)


@WIDE
@pytest.mark.parametrize("power_w", [90.0, None])
def test_a_result_shows_measured_beside_predicted(width: int, power_w: float | None) -> None:
    text = shown(trained.render(result(power_w), RunFolder(PATH)), width)
    assert "-5.1 %" in row(text, "error")
    assert "after 100 steps: accuracy 50.0 %" in text
    assert "a: a note" in text
    assert "2.0 %" in row(text, "measured")
    assert "workers" not in text
    assert text.splitlines()[-1] == "to use it: planner export runs/x --to model.pt"


@pytest.mark.parametrize(
    ("model", "framework", "file"),
    [
        ("net", "tensorflow", "model.pt"),
        ("train.py:job", "torch", "model.pth"),
        ("net.py:net", "tensorflow", "model.weights.h5"),
    ],
)
def test_the_last_line_names_a_file_that_the_model_surely_can_be_exported_to(
    model: str, framework: str, file: str
) -> None:
    made = {**result(), "model": model}
    made["workers"]["a"]["framework"] = framework
    assert shown(trained.render(made, RunFolder(PATH))).splitlines()[-1].endswith(f"runs/x --to {file}")


def test_one_sentence_tells_what_was_trained_and_how_well_it_was_predicted() -> None:
    measured = {**result()["measured"], "energy_j": 1600.0}
    made = {**result(), "measured": measured}
    sentence = "Trained 100 steps on a in 100 s with 1.60 kJ"
    assert trained.summary(made, RunFolder(PATH)) == f"{sentence}, 5 % slower than predicted; weights in runs/x."
    exact = {**made, "error": dict.fromkeys(made["error"], 0.001)}
    assert trained.summary(exact, RunFolder(PATH)) == f"{sentence}, as predicted; weights in runs/x."


def test_the_sentence_is_followed_by_how_the_run_ended() -> None:
    target = {"metric": "accuracy", "value": 0.5, "reached": True, "step": 40}
    early = {**result(), "steps_made": 40, "ended": "interrupted"}
    reached = trained.summary({**early, "target": target}, RunFolder(PATH))
    assert reached.endswith("It reached accuracy=0.5 after 40 steps.")
    missed = trained.summary({**early, "target": {**target, "reached": False}}, RunFolder(PATH))
    assert missed.startswith("Trained 40 steps")
    assert missed.endswith("It did not reach accuracy=0.5. The run ended early: interrupted.")


def test_verbose_adds_each_worker_and_the_metrics_on_the_way() -> None:
    text = shown(trained.render(result(), RunFolder(PATH), verbose=True))
    assert "99.6" not in text and "100" in row(text.partition("\nworkers")[2], "a")
    assert "accuracy: 40.0 % after 50, 50.0 % after 100 steps" in text


def test_a_result_on_emulated_devices_is_labelled() -> None:
    text = shown(trained.render(result(source=EMULATED), RunFolder(PATH), verbose=True))
    assert row(text, "measured (emulated)")
    assert "emulated (slowdown 4)" in row(text.partition("workers")[2], "a*")
    assert "* emulated" in text
    assert "emulated" not in shown(trained.render(result(), RunFolder(PATH), verbose=True))


def test_a_view_that_fails_ends_in_one_line_that_says_where_the_run_is() -> None:
    message = "^the run is complete, in runs/x, but its result cannot be shown: KeyError: 'time_s'$"
    with pytest.raises(RunError, match=message), trained.complete(RunFolder(PATH), []):
        raise KeyError("time_s")


def test_what_is_missing_of_a_complete_run_is_told_after_its_result() -> None:
    shown_before = []
    with (
        pytest.raises(RunError, match="runs/x, but no room; no f1$"),
        trained.complete(RunFolder(PATH), ["no room", "no f1"]),
    ):
        shown_before.append("the result")
    assert shown_before
    with trained.complete(RunFolder(PATH), []):
        pass
