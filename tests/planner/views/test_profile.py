"""A profile on screen: steps, watts, links, and what failed."""

import json
from pathlib import Path

import pytest

from planner.profile.file import Profile
from planner.views import profile
from planner.views.profile_json import to_json
from profilers.records.readings import PowerReading, Samples, StreamRate, Window
from profilers.records.steps import BatchMemory, StepMemory
from tests.planner import profiles
from tests.planner.screens import WIDTHS, row, shown

WIDE = pytest.mark.parametrize("width", WIDTHS)
PATH = Path("profile.json")


@pytest.mark.parametrize("width", (60, *WIDTHS))
def test_a_profile_begins_with_what_was_measured_and_has_a_row_a_device(width: int) -> None:
    text = shown(profile.render(profiles.three(), PATH), width)
    sentence, table, _ = text.split("\n\n")
    assert " ".join(sentence.split()) == "Profiled net on 3 devices in 25.0 s: a step takes 110 ms on a to 1.71 s on c."
    assert [row(table, name).split()[1] for name in "abc"] == ["32"] * 3
    assert "links between devices: " in text
    assert "warmed up" not in text


def test_watts_of_an_emulated_device_are_labelled() -> None:
    text = shown(profile.render(profiles.three(slowdown=4.0), PATH, verbose=True))
    rows = [line for line in text.splitlines() if line.startswith("c (emulated, 4x slower)")]
    assert len(rows) == 2  # its steps and its watts
    assert "nameplate, emulated (fleet file, slowdown 4)" in rows[1]
    assert "emulated" not in shown(profile.render(profiles.three(), PATH, verbose=True))


@WIDE
def test_streams_are_shown_by_what_devices_read(width: int) -> None:
    made = profiles.three().with_device("a", streams={"socket:h:1": StreamRate(38.0, 0.01, 10.0, 3336.0)})
    text = shown(profile.render(made, PATH, verbose=True), width)
    assert {"socket:h:1", "38.0", "2.0"} <= set(text.partition("streams of samples")[2].split())
    assert "streams of samples" not in shown(profile.render(profiles.three(), PATH, verbose=True), width)
    told = to_json(made, PATH)["devices"]
    assert told["a"]["streams"]["socket:h:1"]["rate"] == 38.0 and "streams" not in told["b"]


MEMORY = StepMemory((BatchMemory(16, 300_000_000), BatchMemory(32, 500_000_000)), too_large=64)


def measured(memory: StepMemory = MEMORY, **changes: object) -> Profile:
    return profiles.profile({"a": profiles.device(profiles.step(memory=memory, **changes))})


@WIDE
def test_the_memory_of_a_step_is_shown_with_the_largest_batch_that_fits(width: int) -> None:
    text = shown(profile.render(measured(), PATH, verbose=True), width)
    table = text.partition("peak memory of a training step")[2].partition("watts")[0]
    assert row(table, "a").split()[-1] == "63"
    assert "500 MB" in row(table, "a")
    assert "memory" not in shown(profile.render(profiles.three(), PATH, verbose=True), width)


def test_notes_name_a_batch_that_did_not_fit_and_memory_that_is_shared_or_unknown() -> None:
    odd = measured(MEMORY._replace(is_shared=True, reason="hidden"), batch=32, requested_batch=64)
    assert profile.notes(odd) == [
        "a: net: batch 64 ran out of memory when it was profiled; take --batch-size 63; timed at 32",
        "a: memory of a step is not known: hidden",
    ]
    assert profile.details(odd) == ["a: its GPU shares the memory of the processor"]


def test_watts_that_are_not_known_are_dashes() -> None:
    unknown = profiles.profile({"a": profiles.device(idle_w=None)})
    watts = shown(profile.render(unknown, PATH, verbose=True)).partition("watts")[2].partition("links")[0]
    assert row(watts, "a").split() == ["a", "net", "torch", "-", "-", "-", "-", "unavailable"]
    (measured,) = to_json(unknown, PATH)["devices"]["a"]["timings"]
    assert (measured["idle_w"], measured["busy_w"], measured["provenance"]["kind"]) == (None, None, "unavailable")
    assert "no idle_watts and max_watts in the fleet file" in measured["provenance"]["detail"]
    assert "a: watts unavailable: no idle_watts" in shown(profile.render(unknown, PATH, verbose=True))


def test_watts_that_were_measured_say_how_far_they_may_be_off() -> None:
    idle, busy = (
        Window(1.0, {}, (PowerReading("plug", "sensor", "wall", w, 0.5, 9, relative_error=0.01),)) for w in (10.0, 50.0)
    )
    sensed = profiles.profile({"a": profiles.device(profiles.step(window=busy))._replace(idle=idle)})
    watts = shown(profile.render(sensed, PATH, verbose=True)).partition("watts")[2].partition("links")[0]
    assert " ".join(row(watts, "a").split()[3:]) == "10.0 W 2.0 % 50.0 W 2.0 % integrated sensor of the wall plug"
    (told,) = to_json(sensed, PATH)["devices"]["a"]["timings"]
    assert told["provenance"] == {"kind": "sensor", "covers": ["wall"], "emulated": False, "detail": ""}
    assert told["busy_uncertainty"] == pytest.approx(0.0196, rel=1e-3)


def test_a_model_that_was_timed_in_two_frameworks_is_told_twice() -> None:
    both = profiles.device()._replace(steps=(profiles.step(0.1), profiles.step(0.3, framework="tensorflow")))
    made = profiles.profile({"a": both})
    told = to_json(made, PATH)["devices"]["a"]["timings"]
    assert [(each["model"], each["framework"], round(each["gradient_s"], 3)) for each in told] == [
        ("net", "torch", 0.1), ("net", "tensorflow", 0.3)
    ]  # fmt: skip
    steps = shown(profile.render(made, PATH, verbose=True)).partition("watts")[0]
    assert [line.split()[:3] for line in steps.splitlines() if line.startswith("a ")] == [
        ["a", "net", "torch"], ["a", "net", "tensorflow"]
    ]  # fmt: skip


@WIDE
def test_sensors_that_are_not_used_or_contradict_each_other_are_told(width: int) -> None:
    readings = (
        PowerReading("plug", "sensor", "wall", 20.0, 0.5, 9),
        PowerReading("nvml:0", "counter", "gpu", 30.0, 0.5, 9),
        PowerReading("ina", "unavailable", "board", None, None, 9, "it repeats one value; flagged and not used"),
        PowerReading("rapl", "unavailable", "", None, None, 0, "not here"),
    )
    odd = profiles.profile({"a": profiles.device(profiles.step(window=Window(1.0, {}, readings)))})
    assert to_json(odd, PATH)["notes"] == [
        "a: ina: it repeats one value; flagged and not used",
        "a: gpu (nvml:0) 30 W exceeds wall (plug) 20 W, which contains it",
    ]
    assert "flagged and not used" in " ".join(shown(profile.render(odd, PATH, verbose=True), width).split())


@WIDE
def test_a_profile_that_was_cut_short_is_still_shown(width: int) -> None:
    empty = Samples("s", ())
    dead = profiles.device()._replace(steps=(), facts=None, error="x: cannot be reached [Errno 113]")
    halted = profiles.device(profiles.changed(profiles.step(), gradient_s=empty, service_s=empty, update_s=empty))
    silent = profiles.link("halted", "dead", bytes_per_s=Samples("B/s", ()), latency_s=0.0)
    cut = profiles.profile({"dead": dead, "halted": halted})._replace(
        links=(silent._replace(latency_s=empty, bytes_per_s=Samples("B/s", ())),)
    )
    assert "cannot be reached [Errno 113]" in shown(profile.render(cut, PATH, verbose=True), width)
    json.dumps(to_json(cut, PATH), allow_nan=False)


@WIDE
def test_why_a_model_or_a_link_was_not_measured_is_told_once(width: int) -> None:
    part = profiles.device()._replace(failures={"vgg19": "out of memory"})
    nothing = part._replace(steps=(), error="vgg19: out of memory")
    failing = profiles.profile({"part": part, "nothing": nothing}, link_errors={"part -> nothing": "no route"})
    lines = shown(profile.render(failing, PATH, verbose=True), width).splitlines()
    assert [line for line in lines if "memory" in line or "route" in line] == [
        "part: vgg19: out of memory", "nothing: vgg19: out of memory", "part -> nothing: no route"
    ]  # fmt: skip
    told = to_json(failing, PATH)
    assert told["devices"]["part"]["failures"] == {"vgg19": "out of memory"}
    assert told["link_errors"] == {"part -> nothing": "no route"}
