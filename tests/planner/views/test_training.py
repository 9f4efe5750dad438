"""A run on screen while it goes on."""

import pytest
from rich.live import Live

from backends.protocol.events import Dropped, Evaluated, MemberProgress, MemberTelemetry, Progress, Refused, TimeSpent
from planner import console
from planner.provenance import Provenance
from planner.views import training
from planner.views.training import TrainingProgress
from profilers.records.readings import PowerReading, Window
from tests.planner.plans import NAMEPLATE, plan, planned
from tests.planner.screens import WIDTHS, row, shown

WIDE = pytest.mark.parametrize("width", WIDTHS)
EMULATED = NAMEPLATE._replace(emulated=True, detail="slowdown 4")


def progress(source: Provenance = NAMEPLATE) -> TrainingProgress:
    """The view of a run of ``a`` and ``b``, where ``b``'s watts have this source."""

    view = TrainingProgress(Live(console=console.plain(stderr=True), auto_refresh=False))
    view.on_plan(plan(planned("a"), planned("b", source=source)))
    at = MemberProgress(40, 0.5, 10**6, 0.0, True)
    gone = at._replace(connected=False, loss=None)
    view.on_event("a", Progress(80, 100, 20.0, {"a": at, "b": gone}))
    return view


def window(*readings: tuple[str, str, float | None], source: str = "sensor") -> MemberTelemetry:
    power = tuple(PowerReading(name, source, covers, watts, 0.0, 5) for name, covers, watts in readings)
    return MemberTelemetry(Window(5.0, {}, power), TimeSpent())


def live(view: TrainingProgress, width: int = 160) -> str:
    table = view.live.get_renderable()
    return shown(table, width)


@WIDE
def test_the_live_table_has_a_row_a_worker(width: int) -> None:
    text = live(progress(), width)
    assert "80 of 100 steps, 80 %, 5.00 s left" in text
    assert "after 20.0 s" in text
    assert "2.00" in row(text, "a")
    assert row(text, "b").endswith("lost")


def test_many_refused_connections_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    view = progress()
    view.on_event("server", Refused("10.0.0.9: TLS handshake failed"))
    view.on_event("server", Refused("10.0.0.9: TLS handshake failed", 1281))
    one, many = capsys.readouterr().err.splitlines()[-2:]
    assert one == "server: a connection was refused: 10.0.0.9: TLS handshake failed"
    assert many == "server: 1,281 more connections were refused, the last one: 10.0.0.9: TLS handshake failed"


def test_live_watts_that_are_not_known_are_a_dash() -> None:
    view = progress()
    view.on_event("a", window(("board", "board", None)))
    assert " W" not in row(live(view), "a")


def test_what_happens_is_told_on_standard_error_only(capsys: pytest.CaptureFixture[str]) -> None:
    with training.training() as view:
        view.on_profile("tx2", "net: timed step 10", 0.1)
        view.on_profile("tx2", "net 12 ms a step", 1.0)
        view.on_plan(plan(planned("a"), planned("b")))
        view.on_event("parameter server", Dropped("b", "silent for 10 s"))
        view.on_event("a", Evaluated(1000, "a", 0.25, {"accuracy": 0.755}, 1.0))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "tx2: net 12 ms a step",
        "net: 100 steps, server on a, workers a, b; predicted 100 s",
        "parameter server: b was dropped: silent for 10 s",
        "step 1,000: loss 0.2500, accuracy 75.5 %",
    ]


def test_emulated_devices_of_a_plan_are_marked_and_the_mark_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with training.training() as view:
        view.on_plan(plan(planned("a"), planned("b", source=EMULATED)))
    said, note = capsys.readouterr().err.splitlines()
    assert said == "net: 100 steps, server on a, workers a, b*; predicted 100 s"
    assert note.startswith("* emulated")


# -- how much is told ------------------------------------------------------------------------------


def at(done: int) -> Progress:
    return Progress(done, 200, 30.0, {})


def test_in_a_pipe_progress_is_a_line_now_and_then_with_percentage_and_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "EVERY_S", -1.0)
    with training.training() as view:
        view.on_event("parameter server", at(50))
        view.on_event("parameter server", at(50))
        view.on_event("parameter server", at(100))
    assert capsys.readouterr().err.splitlines() == [
        "50 of 200 steps, 25 %, 90.0 s left",
        "100 of 200 steps, 50 %, 30.0 s left",
    ]


def test_the_bar_is_as_full_as_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    text = live(progress())
    assert text.splitlines()[0].split() == ["━" * 24, "80", "of", "100", "steps,", "80", "%,", "5.00", "s", "left"]
