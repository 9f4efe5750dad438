"""Logs of runs written by hand.

Every worker's steps cost the same, so that each expectation is plain.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from backends.protocol.events import Built, MemberProgress, MemberTelemetry, Progress, RunAccount, TimeSpent
from backends.protocol.json_messages import encode
from planner.audit.steady_state import extrapolation, steady_state
from planner.errors import RecordError
from planner.json_records import save
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.provenance import Provenance
from planner.train.events import MemberLost, RunEnded, TimeOver
from profilers.records.readings import MachineSpeed, PowerReading, Window
from tests.planner.plans import plan, planned

#: Of the reference loop during the runs.
MEANWHILE = MachineSpeed(0.0025, None, 2)


NOTHING_YET = MemberProgress(0, None, 0, None, True)


def line(t_s: float, source: str, event: Any) -> dict[str, Any]:
    """As it stands in the log."""
    return {"t_s": t_s, "from": source, **encode(event)}


def report(
    name: str,
    t_s: float,
    steps: int,
    cycle_s: float,
    busy: float = 0.5,
    watts: float | None = 20.0,
    speed: MachineSpeed = MEANWHILE,
) -> dict[str, Any]:
    """A worker ``t_s`` seconds after the log began.

    It has made ``steps`` of ``cycle_s``, and computed for the share ``busy`` of that time.
    """
    spent = TimeSpent(steps, busy * cycle_s * steps, (1 - busy) * cycle_s * steps)
    reading = PowerReading("plug", "emulated", "board", watts, 0.0, 5)
    return line(t_s, name, MemberTelemetry(Window(2.0, {}, (reading,)), spent, speed))


def built(name: str, seconds: float) -> dict[str, Any]:
    return line(0.5, name, Built(seconds))


def progress(t_s: float, done: int, counted: int = 0) -> dict[str, Any]:
    """The host has counted ``done`` steps, and ``counted`` of worker a."""
    return line(t_s, "server", Progress(done, 100, t_s, {"a": NOTHING_YET._replace(steps=counted), "b": NOTHING_YET}))


def account(t_s: float = 31.0, elapsed_s: float = 30.0, cpu_s: float = 3.0) -> dict[str, Any]:
    return line(t_s, "planner", RunEnded(RunAccount(100, 100, elapsed_s, {}, True, cpu_s=cpu_s)))


def run(path: Path, events: list[dict[str, Any]], planned_as: Plan | None = None) -> RunFolder:
    folder = RunFolder(path)
    save(planned_as or plan(planned("a"), planned("b")), folder.plan)
    folder.events.write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


#: With 97 of 100 steps made there is work for both workers. With 98 there may be none for the
#: worker that is free first.
ENDS = [progress(10.0, 50), progress(20.0, 97), progress(20.5, 98), progress(24.0, 100)]

#: Worker a makes a step in 0.5 s, b in 2 s.
EVENTS = [
    built("a", 0.25),
    built("b", 1.5),
    *(report("a", t, 2 * t, 0.5) for t in range(2, 24, 2)),
    *(report("b", t, t // 2, 2.0) for t in range(2, 24, 2)),
    *ENDS,
    account(),
]


def test_what_first_steps_take_longer_counts_with_the_time_to_build(tmp_path: Path) -> None:
    # b computes for 1 s of each step of 2 s, and computed 3 s longer before its first report.
    slow = [report("b", t, t // 2, 2.0) for t in range(2, 24, 2)]
    for each in slow:
        each["spent"]["busy_s"] += 3.0
    events = [event for event in EVENTS if (event["from"], event["type"]) != ("b", "member_telemetry")]
    measured = steady_state(run(tmp_path, [*slow, *events]), 0)
    assert measured.workers["b"].build_s == pytest.approx(1.5 + 3.0)
    assert measured.workers["b"].cycle_s == pytest.approx(2.0)


def test_a_step_takes_its_share_of_the_seconds_between_reports(tmp_path: Path) -> None:
    measured = steady_state(run(tmp_path, EVENTS), 3)
    assert {name: worker.cycle_s for name, worker in measured.workers.items()} == pytest.approx({"a": 0.5, "b": 2.0})
    assert (measured.model, measured.server, measured.repetition) == ("net", "a", 3)
    assert measured.workers["b"].build_s == 1.5


def test_what_passes_between_two_steps_is_part_of_a_step_where_the_host_counted_them(tmp_path: Path) -> None:
    """Worker a tells of steps of 0.5 s, and makes one in 0.8 s."""
    counts = [progress(t, 10, counted=round(t / 0.8)) for t in (4.0, 8.0, 12.0, 16.0)]
    measured = steady_state(run(tmp_path, [*EVENTS[:-5], *counts, *ENDS, account()]), 0)
    assert {name: worker.cycle_s for name, worker in measured.workers.items()} == pytest.approx({"a": 0.8, "b": 2.0})


def test_the_steady_state_begins_when_all_have_made_two_steps_and_ends_when_work_runs_out(tmp_path: Path) -> None:
    crowded = [report("a", t, t // 2, 2.0) for t in (2, 4)]  # slow while b is not there yet, and after the end
    alone = [report("a", t, 2 * t - 6, 0.5) for t in range(6, 22, 2)]
    after = [report("a", 22, 100, 9.0)]
    late = [report("b", t, t - 4, 1.0) for t in range(6, 22, 2)]
    measured = steady_state(run(tmp_path, [*crowded, *alone, *after, *late, *ENDS, account()]), 0)
    assert measured.workers["a"].cycle_s == pytest.approx(0.5)
    assert measured.window_s == pytest.approx(20 - 6)


def test_it_ends_when_the_run_is_told_that_it_is_enough(tmp_path: Path) -> None:
    enough = line(12.5, "planner", TimeOver())
    cut_off = line(13.0, "b", MemberLost("the server closed the connection"))  # in the middle of a step
    ends = [progress(12.0, 20), enough, cut_off, progress(20.0, 20), account()]
    assert steady_state(run(tmp_path, [*EVENTS[:-5], *ends]), 0).window_s == pytest.approx(12 - 4)


def test_a_worker_that_makes_no_step_meanwhile_has_no_rate_and_holds_nobody_up(tmp_path: Path) -> None:
    idle = [report("b", t, 0, 2.0) for t in range(2, 22, 2)]
    events = [event for event in EVENTS if event["from"] != "b"]
    measured = steady_state(run(tmp_path, [*idle, *events]), 0)
    assert (measured.workers["a"].cycle_s, measured.workers["b"].steps_per_s) == (pytest.approx(0.5), 0.0)
    assert measured.rate_error == pytest.approx(1 / measured.window_s / 2)  # one step in the window it may have missed


def test_a_worker_whose_share_does_not_count_is_not_waited_for(tmp_path: Path) -> None:
    quick = [report("a", t, 20 * t, 0.05) for t in range(2, 22, 2)]
    late = [report("b", t, t // 8, 8.0) for t in range(2, 22, 2)]  # its second step comes after 16 s of 20
    assert steady_state(run(tmp_path, [*quick, *late, *ENDS, account()]), 0).window_s == pytest.approx(20 - 2)


def test_watts_are_what_the_sensors_said_in_the_steady_state(tmp_path: Path) -> None:
    first = report("a", 2.0, 4, 0.5, watts=90.0)  # its window lies before the steady state
    events = [first, *(event for event in EVENTS if not (event["from"] == "a" and event["t_s"] == 2))]
    measured = steady_state(run(tmp_path, events), 0)
    assert measured.workers["a"].watts == pytest.approx(20.0)
    assert measured.workers["a"].provenance == Provenance("sensor", ("board",), True)


def test_without_sensors_watts_follow_from_the_share_of_the_time_that_is_busy(tmp_path: Path) -> None:
    events = [report("a", t, 2 * t, 0.5, watts=None) for t in range(2, 22, 2)]
    events += [report("b", t, t // 2, 2.0, watts=None) for t in range(2, 22, 2)]
    events += [*ENDS, account(cpu_s=6.0)]
    measured = steady_state(run(tmp_path, events), 0)
    assert measured.workers["b"].watts == pytest.approx(10 + 40 * 0.5)
    assert measured.workers["a"].watts == pytest.approx(10 + 40 * (0.5 + 6 / 30 / 2))  # and the server's, on 2 cores


def test_the_speed_of_a_worker_is_that_of_all_rounds_of_its_reference_loop_meanwhile(tmp_path: Path) -> None:
    speed = steady_state(run(tmp_path, EVENTS), 0).workers["a"].speed
    assert speed is not None
    assert (speed.loop_s, speed.rounds) == (MEANWHILE.loop_s, 8 * MEANWHILE.rounds)


def test_the_rates_error_is_that_of_the_mean_between_reports(tmp_path: Path) -> None:
    assert steady_state(run(tmp_path, EVENTS), 0).rate_error == pytest.approx(0.0, abs=1e-9)


def test_a_log_that_ends_early_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"events\.jsonl: the run did not end; remove the folder"):
        steady_state(run(tmp_path, EVENTS[:-1]), 0)


def test_a_log_that_is_cut_off_is_named(tmp_path: Path) -> None:
    folder = run(tmp_path, EVENTS)
    folder.events.write_text(folder.events.read_text()[:-20])
    with pytest.raises(RecordError, match=r"events\.jsonl: .*remove the folder"):
        steady_state(folder, 0)


def test_a_run_that_is_too_short_says_so(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="too few steps of a, b; audit with more --seconds"):
        steady_state(run(tmp_path, [report("a", 2.0, 1, 0.5), *ENDS, account()]), 0)


def test_a_run_in_which_a_worker_was_lost_is_no_steady_state(tmp_path: Path) -> None:
    lost = line(12.0, "b", MemberLost("the agent ended"))
    with pytest.raises(RecordError, match="b was lost during the run; remove the folder"):
        steady_state(run(tmp_path, [*EVENTS[:-1], lost, EVENTS[-1]]), 0)


def test_a_short_run_foretells_a_longer_one(tmp_path: Path) -> None:
    (tmp_path / "short").mkdir()
    (tmp_path / "long").mkdir()
    short = steady_state(run(tmp_path / "short", EVENTS), 0)
    found = extrapolation(run(tmp_path / "long", [account(elapsed_s=42.0)]), short)
    # 2 and 0.5 steps/s from 0.25 and 1.5 s on: 100 = 2 (T - 0.25) + 0.5 (T - 1.5)
    assert found.predicted_s == pytest.approx((100 + 0.5 + 0.75) / 2.5)
    assert (found.measured_s, found.workers) == (42.0, ("a", "b"))


def test_a_folder_of_an_older_planner_is_read(tmp_path: Path) -> None:
    folder = run(tmp_path, EVENTS)
    written = json.loads(folder.plan.read_text())
    for worker in written["workers"]:
        worker["power_source"] = "emulated (slowdown 4), fleet file: idle and maximum"
    del written["energy_uncertainty"]
    folder.plan.write_text(json.dumps(written))
    older = [json.loads(line) for line in folder.events.read_text().splitlines()]
    for window in (event["window"] for event in older if "window" in event):
        del window["cpu_share"], window["seconds"]
        window["power"] = [
            {key: reading[key] for key in ("sensor", "source", "covers", "watts", "stdev", "count", "reason")}
            for reading in window["power"]
        ]
    folder.events.write_text("".join(json.dumps(event) + "\n" for event in older))
    assert steady_state(folder, 0).workers["a"].watts == pytest.approx(20.0)


def test_the_error_of_the_watts_is_that_of_their_mean_between_reports(tmp_path: Path) -> None:
    shaking = [report("a", t, 2 * t, 0.5, watts=20.0 + (t // 2) % 2) for t in range(2, 22, 2)]
    events = [event for event in EVENTS if event["from"] != "a" or "spent" not in event]
    assert 0.0 < steady_state(run(tmp_path, [*shaking, *events]), 0).power_error < 0.02


@pytest.mark.parametrize(("rounds", "disturbance"), [(5, 0.5), (1, 0.0)])
def test_a_loop_that_took_longer_for_a_while_tells_a_disturbance_if_it_made_enough_rounds(
    tmp_path: Path, rounds: int, disturbance: float
) -> None:
    # Of nine reports in the steady state, the loop takes 3 ms in the last three, and 2 ms before.
    speeds = [MachineSpeed(0.003 if t > 14 else 0.002, None, rounds) for t in range(2, 22, 2)]
    slowed = [report("a", t, 2 * t, 0.5, speed=speed) for t, speed in zip(range(2, 22, 2), speeds, strict=True)]
    events = [event for event in EVENTS if (event["from"], event["type"]) != ("a", "member_telemetry")]
    assert steady_state(run(tmp_path, [*slowed, *events]), 0).disturbance == pytest.approx(disturbance)
