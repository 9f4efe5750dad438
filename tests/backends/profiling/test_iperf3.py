"""iperf3 serves one test on each port and ends with its order; a failure says what to look at."""

import json
import os
import shutil
import socket

import pytest

from backends.profiling import iperf3
from backends.protocol.orders import ServeThroughput
from profilers.goodput import LinkError, LinkThroughput
from tests.serving import LOOPBACK, Serving, quiet

needs_iperf3 = pytest.mark.skipif(
    shutil.which("iperf3") is None and "CI" not in os.environ, reason="no iperf3 on this machine"
)
#: Seconds of a test that nobody makes.
SECONDS = 0.1


@pytest.fixture
def impatient(monkeypatch):
    """Silence is noticed soon."""
    monkeypatch.setattr(iperf3, "SILENCE_LIMIT_S", 0.5)


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


@needs_iperf3
def test_servers_do_not_wait_for_ever(impatient):
    with serving(1) as server, pytest.raises(LinkError, match=f"at {LOOPBACK}, ports .* never began or ended"):
        server.result.result()


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


def test_a_client_that_hears_nothing_suspects_a_firewall(pretended, impatient):
    pretended("exec sleep 60")
    with pytest.raises(LinkError, match=f"{LOOPBACK}:5201 did not end .* firewall"):
        iperf3.send(LOOPBACK, 5201, seconds=0)


# -- either ----------------------------------------------------------------------------------------


def test_a_device_without_iperf3_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LinkError, match="cannot start iperf3"):
        iperf3.serve(quiet(), LOOPBACK, 1, SECONDS)
    with pytest.raises(LinkError, match="cannot start iperf3"):
        iperf3.send(LOOPBACK, 5201, SECONDS)
