"""A row a device with what it gave to others and received, while a run goes on and at its end."""

from backends.protocol.stream_statistics import InjectionStatistics
from planner.views.samples import injection_columns, injection_table
from tests.planner.screens import row, shown

ONE = InjectionStatistics(30, 9000, 50, 15000, 40, 10, 2, 1, {"pc": 30, "nano": 30})


def test_who_gave_how_many_to_whom_is_shown() -> None:
    silent = ONE._replace(shared=0, sent_bytes=0, shared_with={})
    text = shown(injection_table(injection_columns({"tx2": ONE, "pc": silent})))
    assert "30  nano 30, pc 30  9.00 kB" in row(text, "tx2").replace("   ", "  ")
    assert row(text, "tx2").split()[-5:] == ["40", "2", "1", "15.0", "kB"]
    assert row(text, "pc").split()[1:4] == ["0", "-", "0"]
