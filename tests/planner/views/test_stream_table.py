"""A row a device with its stream of samples, while a run goes on and at its end."""

from backends.protocol.stream_statistics import StreamStatistics
from planner.views.stream_table import stream_columns, stream_table
from tests.planner.screens import row, shown

SLOW = StreamStatistics(38.0, 64, 640, 8.0, 700, 640, 60, 90, 0, 0, 0)


def test_the_share_of_waiting_and_the_samples_are_shown() -> None:
    text = shown(stream_table(stream_columns({"tx2": SLOW, "pc": SLOW._replace(rate=None)}, 16.0)), 160)
    assert row(text, "tx2").split() == ["tx2", "38.0", "64", "60", "90", "50", "%", "700", "640", "0"]
    assert row(text, "pc").split()[1] == "-"


def test_the_predicted_share_of_waiting_is_beside_the_measured_one() -> None:
    made = stream_columns({"tx2": SLOW, "pc": SLOW}, 16.0)
    assert "predicted" not in shown(stream_table(made), 160)
    made["tx2"]["predicted_waiting_share"] = 0.43
    text = shown(stream_table(made), 160)
    assert row(text, "tx2").split()[6:10] == ["%", "43", "%", "700"]
    assert row(text, "pc").split()[6:9] == ["%", "-", "700"]
