"""Results go to standard output, progress to standard error, as much of it as was asked for."""

import pytest

from planner import console
from planner.remote.drain import OUTPUT


def test_progress_is_a_line_a_stage_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress() as on_progress:
        on_progress("tx2", "net: timed step 1", 0.1)
        on_progress("tx2", "net: timed step 2", 0.2)
        on_progress("tx2", "failed: [Errno 113]", None)
    with console.status("checking") as on_progress:
        on_progress("tx2", "login [/x]", None)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["tx2: net: timed", "tx2: failed: [Errno 113]"]


def test_one_bar_leaves_a_line_where_something_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with console.one_bar() as on_progress:
        on_progress("tx2", "net: timed step 1", 0.1)
        on_progress("tx2", "net 12 ms a step", 1.0)
        on_progress("tx1", "failed: [Errno 113]", None)
    assert capsys.readouterr().err.splitlines() == ["tx2: net 12 ms a step", "tx1: failed: [Errno 113]"]


def test_json_with_no_number_is_refused_and_never_written(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        console.show({"watts": float("nan")})
    assert capsys.readouterr().out == ""


# -- how much is told ------------------------------------------------------------------------------


def tell(detail: console.Detail) -> None:
    with console.progress(detail) as on_progress:
        on_progress("tx2", "net: timed step 1", 0.1)
        on_progress("tx2", "net: timed step 2", 0.2)
        OUTPUT.debug("%s: %s", "tx2", "libcudart: not found")
    OUTPUT.debug("%s: %s", "tx2", "after the end")


@pytest.mark.parametrize(
    ("detail", "lines"),
    [
        (console.Detail.QUIET, []),
        (console.Detail.NORMAL, ["tx2: net: timed"]),
        (console.Detail.VERBOSE, ["tx2: net: timed step 1", "tx2: net: timed step 2", "tx2: libcudart: not found"]),
    ],
)
def test_as_much_is_told_as_was_asked_for(
    capsys: pytest.CaptureFixture[str], detail: console.Detail, lines: list[str]
) -> None:
    tell(detail)
    assert capsys.readouterr().err.splitlines() == lines
