"""iperf3 serves one test on each port and ends with its order; a failure says what to look at."""

import json
import math
import os
import shutil
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.profiling import iperf3
from backends.profiling.probing import LinkError
from backends.protocol.orders import ServeThroughput
from profilers.records.links import LinkThroughput
from tests.mutations import MUTATIONS, mutated, written
from tests.serving import LOOPBACK, Serving, quiet

needs_iperf3 = pytest.mark.skipif(
    shutil.which("iperf3") is None and "CI" not in os.environ, reason="no iperf3 on this machine"
)
#: Seconds of a test that nobody makes.
SECONDS = 0.1


@pytest.fixture
def pretended(monkeypatch, tmp_path):
    """Puts a shell script in the place of iperf3."""

    def put(script):
        program = tmp_path / "iperf3"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return put


def serving(count):
    def serve(task, order):
        iperf3.serve(task, order.address, order.count, order.seconds)

    return Serving(serve, ServeThroughput(LOOPBACK, "iperf3", count, SECONDS))


# -- the server ------------------------------------------------------------------------------------


@needs_iperf3
def test_servers_end_with_their_order():
    with serving(2) as server:
        ports = server.ready.ports
    server.result.result()
    assert len(set(ports)) == 2
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, port))


def test_a_server_that_does_not_start_is_tried_again_and_then_the_command_is_told(pretended, tmp_path):
    pretended(f"echo started >> {tmp_path}/starts; exit 1")
    with pytest.raises(LinkError, match="does not start; try it by hand: iperf3 .*--server"):
        iperf3.serve(quiet(), LOOPBACK, 1, SECONDS)
    assert len((tmp_path / "starts").read_text().splitlines()) > 1


# -- the client ------------------------------------------------------------------------------------


def test_rates_are_those_of_the_receiver(pretended, tmp_path):
    sums = [{"bytes": count, "seconds": 0.5, "sender": False} for count in (1000, 2000)]
    percent = {"host_total": 25.0, "remote_total": 50.0}
    end = {"sum_sent": {"bytes": 4096, "seconds": 1.0}, "sum_received": {"bytes": 4096, "seconds": 1.0}}
    report = {"intervals": [{"sum": one} for one in sums], "end": dict(end, cpu_utilization_percent=percent)}
    (tmp_path / "report.json").write_text(json.dumps(report))
    pretended(f"cat {tmp_path}/report.json")
    assert iperf3.send(LOOPBACK, 5201, SECONDS) == LinkThroughput("iperf3", (2000.0, 4000.0), 0.25 / 4096, 0.5 / 4096)


@needs_iperf3
def test_a_client_that_finds_no_server_says_where_it_looked():
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(LinkError, match=f"{LOOPBACK}:{port}.*refused"):
        iperf3.send(LOOPBACK, port, SECONDS)


# -- either ----------------------------------------------------------------------------------------


def test_a_device_without_iperf3_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LinkError, match="cannot start iperf3"):
        iperf3.serve(quiet(), LOOPBACK, 1, SECONDS)
    with pytest.raises(LinkError, match="cannot start iperf3"):
        iperf3.send(LOOPBACK, 5201, SECONDS)


# -- its report ------------------------------------------------------------------------------------


def report(received, sender=False, **more):
    """A report with these (bytes, seconds) as its intervals."""
    sums = [{"bytes": count, "seconds": seconds, "sender": sender} for count, seconds in received]
    total = {"bytes": 10 * sum(count for count, _ in received), "seconds": 10.0}
    return dict(intervals=[{"sum": one} for one in sums], end={"sum_received": total}, **more)


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
    values, error = iperf3.parse_report(text)
    assert error is None
    assert len(values) == count
    assert values[: len(bits_per_second)] == pytest.approx([bits / 8 for bits in bits_per_second], rel=1e-5)


@pytest.mark.parametrize(
    ("name", "message"), [("busy", "busy running a test"), ("dns", "Name or service"), ("refused", "refused")]
)
def test_recorded_errors(shared_data, name, message):
    values, error = iperf3.parse_report((shared_data / "iperf3" / f"error_{name}_3.12.json").read_text())
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
    values, error = iperf3.parse_report(written(told))
    assert all(0.0 <= each < math.inf for each in values)
    assert bool(values) == (error is None)
    assert all(each is None or 0.0 < each < math.inf for each in iperf3.cpu_s_per_byte(written(told)))


TEXT = written(WHOLE)


@pytest.mark.parametrize(
    "text",
    [
        TEXT + "\n" + TEXT,
        TEXT + TEXT[:40],
        "warning: {tcp} window is clamped\n" + TEXT + "\niperf3: done {1}",
        'warning: Report format is "k" ' + TEXT,
        TEXT.replace('"seconds": 2.0}', '"seconds": 2.0, "jitter_ms": nan, "lost_percent": -nan, "most":inf}', 1),
        TEXT.replace('"bytes": 1900', '"bytes": 1.9e 03').replace('"bytes": 2000', '"bytes": 2.000e 03'),
    ],
)
def test_noise_in_and_around_a_report_changes_nothing(text):
    assert text != TEXT
    assert iperf3.parse_report(text) == iperf3.parse_report(TEXT) == ([1000.0, 900.0], None)
    assert iperf3.cpu_s_per_byte(text) == iperf3.cpu_s_per_byte(TEXT) != (None, None)


def test_a_rate_that_is_no_number_is_an_error():
    values, error = iperf3.parse_report(TEXT.replace('"bytes": 1000', '"bytes": nan'))
    assert values == [] and "no complete report" in error


@pytest.mark.parametrize("count", [-1000, float("inf"), float("nan")])
def test_bytes_that_cannot_be_are_no_rate(count):
    values, error = iperf3.parse_report(json.dumps(report([(count, 1.0)])))
    assert values == [] and "no complete report" in error


def test_a_truncated_report_is_an_error_wherever_it_was_cut(shared_data):
    text = (shared_data / "iperf3" / "forward_loopback_3.12.json").read_text().strip()
    for end in range(0, len(text), 97):
        values, error = iperf3.parse_report(text[:end])
        assert values == []
        assert "no complete report" in error


def test_a_short_interval_at_the_end_is_left_out():
    assert iperf3.parse_report(json.dumps(report([(100, 0.1), (9, 0.0005)]))) == ([1000.0], None)


def test_where_most_intervals_are_empty_the_total_counts():
    assert iperf3.parse_report(json.dumps(report([(0, 0.1), (150, 0.1), (0, 0.1)]))) == ([150.0], None)


keys = ["intervals", "sum", "bytes", "seconds", "sender", "end", "sum_received", "error"]
json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(keys), inner),
)


@given(json_values.map(json.dumps) | st.text())
def test_any_text_parses_without_an_exception(text):
    values, error = iperf3.parse_report(text)
    assert bool(values) == (error is None)


def test_commands_bind_one_address_and_ask_for_the_receivers_figures():
    server = iperf3.server_command(5201, "10.0.0.1")
    assert server[server.index("--bind") + 1] == "10.0.0.1"
    assert "--one-off" in server
    client = iperf3.client_command("10.0.0.1", 5201, 0.3)
    assert client[client.index("--time") + 1] == "1"
    assert {"--json", "--get-server-output"} <= set(client)


def test_iperf3_tells_what_a_byte_costs_both_processors(shared_data):
    text = (shared_data / "iperf3" / "forward_loopback_3.12.json").read_text()
    assert iperf3.cpu_s_per_byte(text) == pytest.approx(
        (0.2327 * 3.0011 / 3.3868e9, 0.246 * 3.0011 / 3.3868e9), rel=1e-3
    )


@pytest.mark.parametrize(
    "report",
    ["", "[]", "{}", json.dumps({"end": {"cpu_utilization_percent": {"host_total": 1.0}, "sum_sent": {}}})],
)
def test_a_report_without_it_tells_nothing(report):
    assert iperf3.cpu_s_per_byte(report) == (None, None)


def test_a_share_that_is_none_is_not_told():
    percent = {"host_total": 0, "remote_total": 50.0}
    end = {"cpu_utilization_percent": percent, "sum_sent": {"bytes": 100, "seconds": 2.0}}
    assert iperf3.cpu_s_per_byte(json.dumps({"end": end})) == (None, 0.01)
