"""What ranks print is shown behind their devices; it commands a terminal only where wanted."""

import pytest

from planner.console import Detail
from planner.launch.output import ERR, OUT
from planner.views.launch import ranks

RED = "\x1b[31mloss 0.5\x1b[0m"


@pytest.mark.parametrize(("raw", "shown"), [(False, r"\x1b[31mloss 0.5\x1b[0m"), (True, RED)])
def test_colours_of_a_script_stay_where_they_are_asked_for(
    capsys: pytest.CaptureFixture[str], raw: bool, shown: str
) -> None:
    with ranks(Detail.NORMAL, all_to_errors=False, raw=raw) as callbacks:
        callbacks.on_line("tx2", OUT, RED)
        callbacks.on_line("tx2", ERR, RED)
        callbacks.on_note("tx2 has ended with \x1b]0;title\x07")
    out, err = capsys.readouterr()
    assert out == f"[tx2] {shown}\n"
    assert err.startswith(f"[tx2] {shown}\n") and "\x1b]" not in err
