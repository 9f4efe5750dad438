"""What is shown: rendered at the widths of terminals and files, and what must be found in it."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from planner import console as render
from planner.paths import RunFolder
from planner.plan.recommend import recommend
from planner.plan.request import RecommendRequest
from planner.profile.file import Profile
from planner.provenance import Provenance
from planner.views import models, profile, ranking, training
from planner.views.training import TrainingProgress
from profilers.records import PowerReading, Samples, Window, encode
from tests.planner import profiles
from tests.planner.plans import NAMEPLATE, plan, planned

WIDTHS = pytest.mark.parametrize("width", [80, 160])
PATH = Path("profile.json")
EDP = {"edp": 1.0}
WALL = Provenance("sensor", ("wall",))
EMULATED = NAMEPLATE._replace(emulated=True, detail="slowdown 4")


def shown(what: RenderableType, width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert all(len(line) <= width for line in text.splitlines())
    return text


def fleet(slowdown: float = 1.0, spread: float = 0.0) -> Profile:
    """Three devices, of which ``c`` may be emulated."""
    steps = {
        "a": profiles.step(0.1, spread=spread),
        "b": profiles.step(0.4, spread=spread),
        "c": profiles.step(1.7, spread=spread, slowdown=slowdown),
    }
    return profiles.profile({name: profiles.device(step) for name, step in steps.items()})


def row(text: str, start: str) -> str:
    """The one line that begins so."""
    (found,) = (line for line in text.splitlines() if line.startswith(f"{start} "))
    return found


# -- profile ---------------------------------------------------------------------------------------


@WIDTHS
def test_a_profile_shows_steps_watts_and_links(width: int) -> None:
    text = shown(profile.render(fleet(), PATH), width)
    assert text.index("training step") < text.index("watts") < text.index("links")
    assert "wrote profile.json" in text


def test_watts_of_an_emulated_device_are_labelled() -> None:
    text = shown(profile.render(fleet(slowdown=4.0), PATH))
    rows = [line for line in text.splitlines() if line.startswith("c (emulated, 4x slower)")]
    assert len(rows) == 2  # its steps and its watts
    assert "nameplate, emulated (fleet file, slowdown 4)" in rows[1]
    assert "emulated" not in shown(profile.render(fleet(), PATH))


def test_watts_that_are_not_known_are_dashes() -> None:
    unknown = profiles.profile({"a": profiles.device(idle_w=None)})
    watts = shown(profile.render(unknown, PATH)).partition("watts")[2].partition("links")[0]
    assert row(watts, "a").split() == ["a", "net", "torch", "-", "-", "-", "-", "unavailable"]
    (measured,) = profile.to_json(unknown, PATH)["devices"]["a"]["timings"]
    assert (measured["idle_w"], measured["busy_w"], measured["provenance"]["kind"]) == (None, None, "unavailable")
    assert "no idle_watts and max_watts in the fleet file" in measured["provenance"]["detail"]
    assert "a: watts unavailable: no idle_watts" in shown(profile.render(unknown, PATH))


def test_watts_that_were_measured_say_how_far_they_may_be_off() -> None:
    idle, busy = (
        Window(1.0, {}, (PowerReading("plug", "sensor", "wall", w, 0.5, 9, relative_error=0.01),)) for w in (10.0, 50.0)
    )
    sensed = profiles.profile({"a": profiles.device(profiles.step(window=busy))._replace(idle=idle)})
    watts = shown(profile.render(sensed, PATH)).partition("watts")[2].partition("links")[0]
    assert " ".join(row(watts, "a").split()[3:]) == "10.0 W 2.0 % 50.0 W 2.0 % integrated sensor of the wall plug"
    (told,) = profile.to_json(sensed, PATH)["devices"]["a"]["timings"]
    assert told["provenance"] == {"kind": "sensor", "covers": ["wall"], "emulated": False, "detail": ""}
    assert told["busy_uncertainty"] == pytest.approx(0.0196, rel=1e-3)


def test_a_model_that_was_timed_in_two_frameworks_is_told_twice() -> None:
    both = profiles.device()._replace(steps=(profiles.step(0.1), profiles.step(0.3, framework="tensorflow")))
    made = profiles.profile({"a": both})
    told = profile.to_json(made, PATH)["devices"]["a"]["timings"]
    assert [(each["model"], each["framework"], round(each["gradient_s"], 3)) for each in told] == [
        ("net", "torch", 0.1), ("net", "tensorflow", 0.3)
    ]  # fmt: skip
    steps = shown(profile.render(made, PATH)).partition("watts")[0]
    assert [line.split()[:3] for line in steps.splitlines() if line.startswith("a ")] == [
        ["a", "net", "torch"], ["a", "net", "tensorflow"]
    ]  # fmt: skip


@WIDTHS
def test_sensors_that_are_not_used_or_contradict_each_other_are_told(width: int) -> None:
    readings = (
        PowerReading("plug", "sensor", "wall", 20.0, 0.5, 9),
        PowerReading("nvml:0", "counter", "gpu", 30.0, 0.5, 9),
        PowerReading("ina", "unavailable", "board", None, None, 9, "it repeats one value; flagged and not used"),
        PowerReading("rapl", "unavailable", "", None, None, 0, "not here"),
    )
    odd = profiles.profile({"a": profiles.device(profiles.step(window=Window(1.0, {}, readings)))})
    assert profile.to_json(odd, PATH)["notes"] == [
        "a: ina: it repeats one value; flagged and not used",
        "a: gpu (nvml:0) 30 W exceeds wall (plug) 20 W, which contains it",
    ]
    assert "flagged and not used" in " ".join(shown(profile.render(odd, PATH), width).split())


@WIDTHS
def test_a_profile_that_was_cut_short_is_still_shown(width: int) -> None:
    empty = Samples("s", ())
    dead = profiles.device()._replace(steps=(), facts=None, error="x: cannot be reached [Errno 113]")
    halted = profiles.device(profiles.step()._replace(gradient_s=empty, service_s=empty, update_s=empty))
    silent = profiles.link("halted", "dead", bytes_per_s=Samples("B/s", ()), latency_s=0.0)
    cut = profiles.profile({"dead": dead, "halted": halted})._replace(
        links=(silent._replace(latency_s=empty, bytes_per_s=Samples("B/s", ())),)
    )
    assert "cannot be reached [Errno 113]" in shown(profile.render(cut, PATH), width)
    json.dumps(profile.to_json(cut, PATH), allow_nan=False)


@WIDTHS
def test_why_a_model_or_a_link_was_not_measured_is_told_once(width: int) -> None:
    part = profiles.device()._replace(failures={"vgg19": "out of memory"})
    nothing = part._replace(steps=(), error="vgg19: out of memory")
    failing = profiles.profile({"part": part, "nothing": nothing}, link_errors={"part -> nothing": "no route"})
    lines = shown(profile.render(failing, PATH), width).splitlines()
    assert [line for line in lines if "memory" in line or "route" in line] == [
        "part: vgg19: out of memory", "nothing: vgg19: out of memory", "part -> nothing: no route"
    ]  # fmt: skip
    told = profile.to_json(failing, PATH)
    assert told["devices"]["part"]["failures"] == {"vgg19": "out of memory"}
    assert told["link_errors"] == {"part -> nothing": "no route"}


# -- recommend -------------------------------------------------------------------------------------


@WIDTHS
@pytest.mark.parametrize("top", [0, 1, 5, 50])
def test_a_ranking_is_shown_with_the_best_worker_by_worker(width: int, top: int) -> None:
    text = shown(ranking.render(recommend(fleet(), RecommendRequest(EDP)), top, Path("plan.json")), width)
    assert f"best {min(top or 12, 12)} of 12 by edp" in text
    assert "α time" in text
    assert "plan.json" in text


def places(found: Any, top: int = 12) -> list[str]:
    text = shown(ranking.render(found, top, PATH)).partition("\n\n")[0]
    return [line.split()[0] for line in text.splitlines()[3:]]


def test_nothing_is_marked_as_a_tie_where_nothing_ties_with_the_best() -> None:
    found = recommend(fleet(), RecommendRequest(EDP))
    assert [row.tie for row in (found.row(1), found.row(2))] == [True, False]
    assert places(found) == [str(place) for place in range(1, 13)]
    assert "ties with the best" not in shown(ranking.render(found, 12, PATH))


def test_a_tie_is_marked_on_the_best_and_on_what_ties_with_it() -> None:
    twins = profiles.profile({name: profiles.device(profiles.step(0.4, spread=0.3)) for name in "ab"})
    found = recommend(twins, RecommendRequest({"time": 1.0}))
    assert found.row(2).tie
    assert places(found)[:2] == ["1=", "2="]
    assert "= ties with the best" in shown(ranking.render(found, 12, PATH))


def test_a_tie_outside_the_rows_shown_is_marked_all_the_same() -> None:
    twins = profiles.profile({name: profiles.device(profiles.step(0.4, spread=0.3)) for name in "ab"})
    assert places(recommend(twins, RecommendRequest({"time": 1.0})), top=1) == ["1="]


def test_every_emulated_device_is_marked_and_the_mark_explained() -> None:
    text = shown(ranking.render(recommend(fleet(slowdown=4.0), RecommendRequest(EDP)), 0, PATH))
    assert "* emulated:" in text
    clusters, _, breakdown = text.partition("\n\n")
    assert " c* " in clusters
    assert not any(word in ("c", "a*", "b*") for word in text.split())
    assert "*" not in shown(ranking.render(recommend(fleet(), RecommendRequest(EDP)), 0, PATH))


def test_watts_of_the_best_are_labelled_where_they_are_emulated() -> None:
    found = recommend(fleet(slowdown=4.0), RecommendRequest(EDP, server="c"))
    breakdown = shown(ranking.render(found, 1, PATH)).partition("worker by worker")[2]
    assert "nameplate, emulated (fleet file, slowdown 4)" in row(breakdown, "c*")


def test_a_spread_that_is_not_known_is_a_dash_and_not_zero() -> None:
    text = shown(ranking.render(recommend(fleet(spread=0.1), RecommendRequest({"power": 1.0})), 0, PATH))
    assert "± 95 %" in text
    assert "0.0 %" not in text


@WIDTHS
def test_a_ranking_by_time_needs_no_watts(width: int) -> None:
    unknown = profiles.profile({name: profiles.device(idle_w=None) for name in "ab"})
    assert " - " in shown(ranking.render(recommend(unknown, RecommendRequest({"time": 1.0})), 0, PATH), width)


def test_the_breakdown_and_the_last_line_are_of_the_place_that_is_planned() -> None:
    found = recommend(fleet(), RecommendRequest(EDP))
    members = [worker.name for worker in found.workers(12)]
    assert members != [worker.name for worker in found.workers(1)]
    text = shown(ranking.render(found, 1, PATH, 12))
    breakdown = text.partition("number 12, worker by worker")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in breakdown.splitlines()[3:]] == members
    assert text.rstrip().endswith("wrote number 12 to profile.json")
    assert "the best, worker by worker" not in text


def test_what_computes_is_told_where_it_is_not_the_same_everywhere() -> None:
    devices = dict(fleet().devices)
    devices["b"] = profiles.device(profiles.step(0.4, framework="tensorflow"))
    mixed = shown(ranking.render(recommend(profiles.profile(devices), RecommendRequest(EDP)), 1, PATH))
    assert "computed with torch on a and c, tensorflow on b: what is fastest on each device" in mixed
    assert "computed with" not in shown(ranking.render(recommend(fleet(), RecommendRequest(EDP)), 1, PATH))


def test_left_out_devices_are_named_with_the_reason() -> None:
    dead = profiles.device()._replace(error="dead: connection refused")
    found = recommend(profiles.profile({**fleet().devices, "dead": dead}), RecommendRequest(EDP))
    assert "left out: dead: dead: connection refused" in shown(ranking.render(found, 1, PATH))


# -- train -----------------------------------------------------------------------------------------


def progress(source: Provenance = NAMEPLATE) -> TrainingProgress:
    """The view of a run of ``a`` and ``b``, where ``b``'s watts have this source."""
    from rich.live import Live

    view = TrainingProgress(Live(console=render.plain(stderr=True), auto_refresh=False))
    view.on_plan(plan(planned("a"), planned("b")._replace(power_source=source)))
    at = {"steps": 40, "loss": 0.5, "staleness": 0.0, "bytes": 10**6, "connected": True}
    gone = {**at, "connected": False, "loss": None}
    view.on_event("a", {"progress": {"done": 80, "total": 100, "elapsed_s": 20.0, "workers": {"a": at, "b": gone}}})
    return view


def window(*readings: tuple[str, str, float | None], source: str = "sensor") -> dict[str, Any]:
    power = tuple(PowerReading(name, source, covers, watts, 0.0, 5) for name, covers, watts in readings)
    return {"window": encode(Window(5.0, {}, power)), "spent": {}}


def live(view: TrainingProgress, width: int = 160) -> str:
    table = view.live.get_renderable()
    return shown(table, width)


@WIDTHS
def test_the_live_table_has_a_row_a_worker(width: int) -> None:
    text = live(progress(), width)
    assert "80 of 100 steps, 80 %, 5.00 s left" in text
    assert "after 20.0 s" in text
    assert "2.00" in row(text, "a")
    assert row(text, "b").endswith("lost")


def test_live_watts_count_no_rail_twice() -> None:
    view = progress()
    view.on_event("a", window(("board", "board", 9.0), ("cpu", "rail", 5.0), ("gpu", "rail", 2.0)))
    assert "9.00 W" in row(live(view), "a")


def test_live_watts_that_are_not_known_are_a_dash() -> None:
    view = progress()
    view.on_event("a", window(("board", "board", None)))
    assert " W" not in row(live(view), "a")


def test_live_watts_of_an_emulated_device_are_labelled() -> None:
    view = progress(EMULATED)
    view.on_event("a", window(("board", "board", 9.0)))
    view.on_event("b", window(("board", "board", 9.0)))
    assert "9.00 W emulated" not in row(live(view), "a")
    assert "9.00 W emulated" in row(live(view), "b")


def test_live_watts_of_an_emulated_sensor_are_labelled() -> None:
    view = progress()
    view.on_event("a", window(("board", "board", 9.0), source="emulated"))
    assert "9.00 W emulated" in row(live(view), "a")


def test_what_each_worker_computes_with_is_told_where_they_differ(capsys: pytest.CaptureFixture[str]) -> None:
    with training.training() as view:
        view.on_plan(plan(planned("a"), planned("b")))
        assert "computes with" not in capsys.readouterr().err
        view.on_plan(plan(planned("a"), planned("b")._replace(framework="tensorflow")))
    assert "a computes with torch; b computes with tensorflow" in capsys.readouterr().err


def test_what_happens_is_told_on_standard_error_only(capsys: pytest.CaptureFixture[str]) -> None:
    with training.training() as view:
        view.on_profile("tx2", "net: timed step 10", 0.1)
        view.on_profile("tx2", "net: timed step 20", 0.2)
        view.on_plan(plan(planned("a"), planned("b")))
        view.on_event("parameter server", {"dropped": "b", "reason": "silent for 10 s"})
        view.on_event("a", {"evaluated": {"step": 1000, "loss": 0.25, "accuracy": 0.755}})
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "tx2: net: timed",
        "net: 100 steps, server on a, workers a, b; predicted 100 s",
        "parameter server: dropped b: silent for 10 s",
        "step 1,000: loss 0.2500, accuracy 75.5 %",
    ]


def test_emulated_devices_of_a_plan_are_marked_and_the_mark_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with training.training() as view:
        view.on_plan(plan(planned("a"), planned("b")._replace(power_source=EMULATED)))
    said, note = capsys.readouterr().err.splitlines()
    assert said == "net: 100 steps, server on a, workers a, b*; predicted 100 s"
    assert note.startswith("* emulated:")


def result(power_w: float | None = 90.0, source: Provenance = WALL) -> dict[str, Any]:
    part = {
        "steps": 100, "predicted_steps": 99.6, "busy_s": 80.0, "exchange_s": 5.0, "watts": power_w,
        "provenance": encode(source), "watts_error": 0.01,
    }  # fmt: skip
    figures = {
        "time_s": 100.0, "power_w": power_w, "energy_j": None, "edp_js": None, "energy_uncertainty": 0.0196,
        "provenance": encode(source),
    }  # fmt: skip
    error = {"time_s": -0.0512, "power_w": None, "energy_j": None, "edp_js": None}
    return {
        "model": "net", "steps": 100, "predicted": figures, "measured": figures, "error": error,
        "workers": {"a": part}, "evaluations": [{"step": 100, "accuracy": 0.5}], "notes": ["a: a note"],
    }  # fmt: skip


@WIDTHS
@pytest.mark.parametrize("power_w", [90.0, None])
def test_a_result_shows_measured_beside_predicted(width: int, power_w: float | None) -> None:
    text = shown(training.render(result(power_w), RunFolder(Path("runs/x"))), width)
    assert "-5.1 %" in row(text, "error")
    assert "accuracy: 50.0 % at 100" in text
    assert "a: a note" in text
    assert "2.0 %" in row(text, "measured")
    assert "run folder: runs/x" in text


def test_a_result_on_emulated_devices_is_labelled() -> None:
    text = shown(training.render(result(source=EMULATED), RunFolder(PATH)))
    assert row(text, "measured (emulated)")
    assert "emulated (slowdown 4)" in row(text.partition("workers")[2], "a*")
    assert "* emulated:" in text
    assert "emulated" not in shown(training.render(result(), RunFolder(PATH)))


# -- models, output --------------------------------------------------------------------------------


@WIDTHS
def test_models_are_shown(width: int) -> None:
    assert "28,711,754" in shown(models.render(), width)


def test_progress_is_a_line_a_stage_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with render.progress() as on_progress:
        on_progress("tx2", "net: timed step 1", 0.1)
        on_progress("tx2", "net: timed step 2", 0.2)
        on_progress("tx2", "failed: [Errno 113]", None)
    with render.status("checking") as on_progress:
        on_progress("tx2", "login [/x]", None)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["tx2: net: timed", "tx2: failed: [Errno 113]"]


def test_json_with_no_number_is_refused_and_never_written(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        render.show({"watts": float("nan")})
    assert capsys.readouterr().out == ""
