"""Devices give one another samples: what is refused and said before, and what the result tells."""

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import PlanError
from planner.plan.file import Plan
from planner.train import orders
from planner.train.injection import check_injection, injected_result, injection_notes, predicted_injection
from planner.train.orders import Options
from tests.planner.pairs import STEPS, hold, new_pair, release, run_folders, start, training
from tests.planner.plans import plan, planned, replan
from tests.running import call, run

INJECT = "alpha=0.5,beta=0.25"
STREAM = {"stream": "replay:desktop@3000/tx2@2000", "steps": 100}


def pair(framework: str = "torch", **settings: Any) -> Plan:
    return plan(planned("a"), planned("b")._replace(framework=framework), **settings)


def test_it_is_off_unless_it_is_asked_for() -> None:
    check_injection(Options(), pair(engine="torch"))
    assert injection_notes(Options(), pair(), 100) == []
    assert predicted_injection(Options(), pair(), {"a": 1.0, "b": 1.0}, 100) == {}
    assert injected_result([]) is None


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (pair(engine="torch"), "--engine torch exchanges gradients alone; choose --engine planner"),
        (pair(job=True, framework="tensorflow"), "the samples of a TensorFlow job are read in order"),
    ],
)
def test_who_cannot_give_samples_is_refused_before_the_run(made: Plan, reason: str) -> None:
    with pytest.raises(PlanError, match=f"--inject {INJECT}: .*{reason}"):
        check_injection(Options(inject=INJECT), made)


@pytest.mark.parametrize("made", [pair(), pair(framework="tensorflow"), plan(planned("a"), engine="torch")])
def test_others_are_not(made: Plan) -> None:
    check_injection(Options(inject=INJECT), made)


def test_another_text_is_refused_with_the_option() -> None:
    with pytest.raises(PlanError, match="--inject alpha=2,beta=0.1: give both shares, each above 0 and at most 1"):
        orders.check(Options(inject="alpha=2,beta=0.1"))


def test_that_samples_leave_their_devices_is_said_with_the_bytes() -> None:
    leave, size = injection_notes(Options(inject=INJECT), pair(), 1000)
    assert "in a step, 1 of 2 devices on average give 7.11 of a batch of 32 to all others" in leave
    # 50 steps each, 25 of them with 7.11 samples: to a server, once.
    assert size.startswith("devices send about 356 kB of samples to the server, which forwards them")
    peers = pair(strategy="local-sgd")
    leave, unknown = injection_notes(Options(inject=INJECT), peers, 1000)
    assert "in a round" in leave and unknown == "the prediction is without the time that this takes"
    assert "has nobody to give samples to" in injection_notes(Options(inject=INJECT), plan(planned("a")), 1000)[0]


def test_of_rounds_of_known_length_one_step_counts() -> None:
    rounds = pair(strategy="local-sgd:local=steps:every=5")
    steps = {"a": 50.0, "b": 50.0}
    every = predicted_injection(Options(inject=INJECT), pair(), steps, 100)
    fifth = predicted_injection(Options(inject=INJECT), rounds, steps, 100)
    assert fifth["a"].shared == pytest.approx(every["a"].shared / 5)


def result_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "result.json").read_text())


@pytest.mark.parametrize("settings", [{}, {"strategy": "baseline"}, pytest.param(STREAM, marks=pytest.mark.e2e)])
def test_two_devices_with_labels_of_their_own_give_one_another_samples(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    devices = new_pair(tmp_path)
    replan(devices, **settings)
    hold(devices, 20)
    done = start(devices, "--inject", INJECT, "--partition", "labels=1", "--verbose")
    for name in ("desktop", "tx2"):
        done.says(f"{name} joined")
    release(devices)
    assert done.ended() == 0, done.errors
    assert "samples leave their devices" in done.errors
    assert "samples of others (--inject)" in done.output
    (folder,) = run_folders(devices)
    result = result_of(folder)
    found = {name: worker["injected"] for name, worker in result["workers"].items()}
    for name, other in (("desktop", "tx2"), ("tx2", "desktop")):
        mine, theirs = found[name], found[other]
        assert mine["shared"] > 0 and mine["shared_with"] == {other: mine["shared"]}
        assert 0 < mine["received"] <= theirs["shared"]
        assert mine["malformed"] == 0
        if "stream" in settings:  # those of others are none of its stream
            worker = result["workers"][name]
            batch = json.loads((folder / "plan.json").read_text())["run"]["batch"]
            assert worker["stream"]["used"] + mine["used"] == batch * worker["steps"]
    predicted = result["injection"]["predicted"]
    assert result["injection"]["inject"] == INJECT
    measured = sum(each["sent_bytes"] for each in found.values())
    assert measured == pytest.approx(sum(each["sent_bytes"] for each in predicted.values()), rel=0.5)
    told = [
        event["injected"]
        for event in map(json.loads, (folder / "events.jsonl").read_text().splitlines())
        if event["type"] == "member_telemetry"
    ]
    assert all(told)


@pytest.mark.e2e
def test_a_resumed_run_gives_samples_as_before_unless_it_is_told_not_to(tmp_path: Path) -> None:
    devices = new_pair(tmp_path)
    assert run(devices, *training("--inject", INJECT, "--steps", "40")).popen.returncode == 0
    (first,) = run_folders(devices)
    again = run(devices, "train", "--resume", str(first), "--steps", str(STEPS))
    assert again.popen.returncode == 0, again.errors
    second = next(folder for folder in run_folders(devices) if folder != first)
    assert result_of(second)["injection"]["inject"] == INJECT
    last = run(devices, "train", "--resume", str(first), "--steps", str(STEPS), "--inject", "none")
    assert last.popen.returncode == 0, last.errors
    third = next(folder for folder in run_folders(devices) if folder not in (first, second))
    assert "injection" not in result_of(third)
    assert all("injected" not in worker for worker in result_of(third)["workers"].values())


def test_the_engine_of_torch_is_refused_in_one_line(tmp_path: Path) -> None:
    devices = new_pair(tmp_path)
    replan(devices, engine="torch", strategy="allreduce")
    done = call(devices, *training("--inject", INJECT))
    assert done.code == 1 and f"--inject {INJECT}: --engine torch exchanges gradients alone" in done.last_line
