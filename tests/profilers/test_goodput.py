"""The goodput of a link comes from iperf3's report, or from the Python sender."""

import json
import math
import socket
import statistics
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers import goodput
from tests.mutations import MUTATIONS, mutated, written
from tests.running import HANG_S

TOKEN = "0123456789abcdef" * 2


def report(received, sender=False, **more):
    """A report with these (bytes, seconds) as its intervals."""
    sums = [{"bytes": count, "seconds": seconds, "sender": sender} for count, seconds in received]
    total = {"bytes": 10 * sum(count for count, _ in received), "seconds": 10.0}
    return dict(intervals=[{"sum": one} for one in sums], end={"sum_received": total}, **more)


# -- parse_iperf3 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "bits_per_second", "count"),
    [
        ("forward", [9020091210.93945], 1),
        ("parallel4", [10838006565.93131], 1),
        ("bidir", [6547512995.418592], 1),
        ("udp50M", [50067167.53218183], 1),
        ("reverse", [11377131162.817469], 3),
    ],
)
def test_recorded_reports(shared_data, name, bits_per_second, count):
    text = (shared_data / "iperf3" / f"{name}_loopback_3.12.json").read_text()
    values, error = goodput.parse_iperf3(text)
    assert error is None
    assert len(values) == count
    assert values[: len(bits_per_second)] == pytest.approx([bits / 8 for bits in bits_per_second], rel=1e-5)


@pytest.mark.parametrize(
    ("name", "message"), [("busy", "busy running a test"), ("dns", "Name or service"), ("refused", "refused")]
)
def test_recorded_errors(shared_data, name, message):
    values, error = goodput.parse_iperf3((shared_data / "iperf3" / f"error_{name}_3.12.json").read_text())
    assert values == []
    assert message in error


WHOLE = report([(1000, 1.0), (900, 1.0)]) | {
    "end": {
        "sum_received": {"bytes": 1900, "seconds": 2.0}, "sum_sent": {"bytes": 2000, "seconds": 2.0},
        "cpu_utilization_percent": {"host_total": 5.0, "remote_total": 7.0},
    }
}  # fmt: skip


@MUTATIONS
@given(mutated(WHOLE))
def test_a_damaged_report_gives_rates_that_can_be_or_an_error(told):
    values, error = goodput.parse_iperf3(written(told))
    assert all(0.0 <= each < math.inf for each in values)
    assert bool(values) == (error is None)
    assert all(each is None or 0.0 < each < math.inf for each in goodput.iperf3_cpu_s(written(told)))


@pytest.mark.parametrize("count", [-1000, float("inf"), float("nan")])
def test_bytes_that_cannot_be_are_no_rate(count):
    values, error = goodput.parse_iperf3(json.dumps(report([(count, 1.0)])))
    assert values == [] and "no complete report" in error


def test_every_recorded_report_is_parsed(shared_data):
    for path in sorted((shared_data / "iperf3").glob("*.json")):
        values, error = goodput.parse_iperf3(path.read_text())
        assert bool(values) != path.name.startswith("error"), path.name
        assert (error is None) == bool(values), path.name


def test_a_truncated_report_is_an_error_wherever_it_was_cut(shared_data):
    text = (shared_data / "iperf3" / "forward_loopback_3.12.json").read_text().strip()
    for end in range(0, len(text), 97):
        values, error = goodput.parse_iperf3(text[:end])
        assert values == []
        assert "no complete report" in error


def test_the_figures_of_the_receiver_count():
    text = json.dumps(report([(900, 0.1)], sender=True, server_output_json=report([(100, 0.1), (120, 0.1)])))
    assert goodput.parse_iperf3(text) == ([1000.0, 1200.0], None)


def test_a_short_interval_at_the_end_is_left_out():
    assert goodput.parse_iperf3(json.dumps(report([(100, 0.1), (9, 0.0005)]))) == ([1000.0], None)


def test_where_most_intervals_are_empty_the_total_counts():
    assert goodput.parse_iperf3(json.dumps(report([(0, 0.1), (150, 0.1), (0, 0.1)]))) == ([150.0], None)


def test_a_few_empty_intervals_are_intervals():
    rates, _ = goodput.parse_iperf3(json.dumps(report([(0, 0.1)] + [(100, 0.1)] * 3)))
    assert rates == [0.0, 1000.0, 1000.0, 1000.0]


@given(st.lists(st.sampled_from([0, 0, 100, 150]), min_size=1, max_size=60))
def test_no_rate_is_nothing_once_a_ramp_up_is_left_out(counts):
    values, error = goodput.parse_iperf3(json.dumps(report([(count, 0.1) for count in counts])))
    edge = len(values) // 5
    assert error or statistics.median(values[edge:]) > 0 < statistics.median(values[edge : len(values) - edge])


def test_a_report_of_zero_bytes_is_an_error():
    assert goodput.parse_iperf3(json.dumps(report([(0, 0.1)]))) == ([], "nothing arrived")


keys = ["intervals", "sum", "bytes", "seconds", "sender", "end", "sum_received", "error"]
json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(keys), inner),
)


@given(json_values.map(json.dumps) | st.text())
def test_any_text_parses_without_an_exception(text):
    values, error = goodput.parse_iperf3(text)
    assert bool(values) == (error is None)


def test_commands_bind_one_address_and_ask_for_the_receivers_figures():
    server = goodput.iperf3_server_command(5201, "10.0.0.1")
    assert server[server.index("--bind") + 1] == "10.0.0.1"
    assert "--one-off" in server
    client = goodput.iperf3_client_command("10.0.0.1", 5201, 0.3)
    assert client[client.index("--time") + 1] == "1"
    assert {"--json", "--get-server-output"} <= set(client)


# -- the Python sender -----------------------------------------------------------------------------


class Receiver(threading.Thread):
    """``goodput.receive`` in a thread, on a port of loopback."""

    def __init__(self, seconds=0.25):
        super().__init__()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.seconds = seconds
        self.error = None
        self.start()

    def run(self):
        with self.listener:
            try:
                goodput.receive(self.listener, TOKEN, self.seconds, lambda: False)
            except goodput.LinkError as error:
                self.error = error


@pytest.fixture
def short_silence_limit(monkeypatch):
    monkeypatch.setattr(goodput, "SILENCE_LIMIT_S", 0.5)


def test_the_sender_gets_the_rates_of_the_receiver():
    receiver = Receiver()
    rates = goodput.send("127.0.0.1", receiver.port, TOKEN, 0.25)
    receiver.join()
    assert receiver.error is None
    assert rates
    assert min(rates) > 0


def test_a_connection_without_the_token_is_closed_and_the_sender_served():
    receiver = Receiver()
    with pytest.raises(goodput.LinkError):
        goodput.send("127.0.0.1", receiver.port, "x" * len(TOKEN), 0.25)
    assert goodput.send("127.0.0.1", receiver.port, TOKEN, 0.25)
    receiver.join()
    assert receiver.error is None


def test_a_receiver_without_a_sender_fails(short_silence_limit):
    receiver = Receiver()
    receiver.join()
    assert "nobody connected" in str(receiver.error)


def test_a_receiver_ends_when_stopped():
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(goodput.LinkError):
        goodput.receive(listener, TOKEN, 1.0, lambda: True)


@pytest.mark.parametrize("reset", [True, False])
def test_a_sender_that_dies_ends_the_receiver(reset):
    receiver = Receiver(seconds=30.0)
    with socket.create_connection(("127.0.0.1", receiver.port)) as sock:
        sock.sendall(TOKEN.encode() + bytes(1000))
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    receiver.join(HANG_S)
    assert not receiver.is_alive()
    assert "sender" in str(receiver.error)


def test_a_sender_that_falls_silent_ends_the_receiver(short_silence_limit):
    receiver = Receiver(seconds=30.0)
    with socket.create_connection(("127.0.0.1", receiver.port)) as sock:
        sock.sendall(TOKEN.encode())
        receiver.join(HANG_S)
    assert not receiver.is_alive()
    assert "lost the sender" in str(receiver.error)


@pytest.mark.parametrize("answer", [b"", b"{}]", b'["x"]'])
def test_a_receiver_that_ends_early_is_an_error(answer):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def end():
            sock, _ = listener.accept()
            with sock:
                sock.recv(len(TOKEN))
                sock.sendall(answer)

        thread = threading.Thread(target=end)
        thread.start()
        with pytest.raises(goodput.LinkError):
            goodput.send("127.0.0.1", listener.getsockname()[1], TOKEN, 5.0)
        thread.join()


def test_a_receiver_that_reads_nothing_is_an_error(short_silence_limit):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(goodput.LinkError, match="no answer"):
            goodput.send("127.0.0.1", port, TOKEN, 0.1)


def test_no_receiver_at_all():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(goodput.LinkError, match=f"127.0.0.1:{port}"):
        goodput.send("127.0.0.1", port, TOKEN, 0.1)


def test_iperf3_tells_what_a_byte_costs_both_processors(shared_data):
    text = (shared_data / "iperf3" / "forward_loopback_3.12.json").read_text()
    assert goodput.iperf3_cpu_s(text) == pytest.approx(
        (0.2327 * 3.0011 / 3.3868e9, 0.246 * 3.0011 / 3.3868e9), rel=1e-3
    )


@pytest.mark.parametrize(
    "report",
    ["", "[]", "{}", json.dumps({"end": {"cpu_utilization_percent": {"host_total": 1.0}, "sum_sent": {}}})],
)
def test_a_report_without_it_tells_nothing(report):
    assert goodput.iperf3_cpu_s(report) == (None, None)


def test_a_share_that_is_none_is_not_told():
    percent = {"host_total": 0, "remote_total": 50.0}
    end = {"cpu_utilization_percent": percent, "sum_sent": {"bytes": 100, "seconds": 2.0}}
    assert goodput.iperf3_cpu_s(json.dumps({"end": end})) == (None, 0.01)
