"""Throughput of a link, both ends in this process, over loopback."""

import os
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from backends.profiling import iperf3, throughput
from backends.protocol.orders import SendThroughput, ServeThroughput
from profilers.goodput import LinkError
from tests.serving import LOOPBACK, Serving, quiet

needs_iperf3 = pytest.mark.skipif(
    shutil.which("iperf3") is None and "CI" not in os.environ, reason="no iperf3 on this machine"
)


@pytest.fixture
def patience(monkeypatch):
    monkeypatch.setattr(iperf3, "SILENCE_LIMIT_S", 0.5)


def serving(tool, count, seconds):
    return Serving(throughput.serve, ServeThroughput(LOOPBACK, tool, count, seconds))


def send(port, tool, seconds=1.0, token=""):
    return throughput.send(quiet(), SendThroughput(LOOPBACK, port, tool, seconds, token))


@pytest.mark.parametrize("tool", [throughput.PYTHON, pytest.param(throughput.IPERF3, marks=needs_iperf3)])
def test_throughput_of_several_senders_at_once(tool):
    seconds = {throughput.PYTHON: 0.3, throughput.IPERF3: 1.0}[tool]
    with serving(tool, 2, seconds) as server:
        assert len(set(server.ready.ports)) == 2
        with ThreadPoolExecutor(2) as pool:
            sent = [pool.submit(send, port, tool, seconds, server.ready.token) for port in server.ready.ports]
        server.result.result(timeout=5)
    for result in (one.result() for one in sent):
        assert result["tool"] == tool
        assert len(result["bytes_per_s"]) >= 2
        assert np.median(result["bytes_per_s"]) > 1e6


@needs_iperf3
def test_iperf3_says_why_it_failed():
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(LinkError, match=f"{LOOPBACK}:{port}.*refused"):
        send(port, throughput.IPERF3)


@needs_iperf3
def test_iperf3_servers_end_with_their_job():
    with serving(throughput.IPERF3, 2, 1.0) as server:
        ports = server.ready.ports
    server.result.result(timeout=2)
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, port))


@needs_iperf3
def test_iperf3_servers_do_not_wait_for_ever(patience):
    with serving(throughput.IPERF3, 1, 0.1) as server, pytest.raises(LinkError, match="never began"):
        server.result.result(timeout=5)


def test_a_device_without_iperf3_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LinkError, match="cannot start iperf3"):
        throughput.serve(quiet(), ServeThroughput(LOOPBACK, throughput.IPERF3, 1, 1.0))
    with pytest.raises(LinkError, match="cannot start iperf3"):
        send(5201, throughput.IPERF3)
