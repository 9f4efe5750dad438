"""Throughput of a link, both ends in this process, over loopback."""

import os
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from backends.profiling import iperf3, throughput
from profilers.links import LinkError
from tests.serving import LOOPBACK, Serving, quiet

needs_iperf3 = pytest.mark.skipif(
    shutil.which("iperf3") is None and "CI" not in os.environ, reason="no iperf3 on this machine"
)


@pytest.fixture
def patience(monkeypatch):
    monkeypatch.setattr(iperf3, "PATIENCE_S", 0.5)


def serving_iperf3(**args):
    return Serving(throughput.serve, address=LOOPBACK, tool=throughput.IPERF3, **args)


@pytest.mark.parametrize("tool", [throughput.PYTHON, pytest.param(throughput.IPERF3, marks=needs_iperf3)])
def test_throughput_of_several_senders_at_once(tool):
    seconds = {throughput.PYTHON: 0.3, throughput.IPERF3: 1.0}[tool]
    with Serving(throughput.serve, address=LOOPBACK, tool=tool, count=2, seconds=seconds) as serving:
        assert len(set(serving.ready["ports"])) == 2
        with ThreadPoolExecutor(2) as pool:
            token = serving.ready["token"]
            sent = [
                pool.submit(throughput.send, quiet(), LOOPBACK, port, tool, seconds, token)
                for port in serving.ready["ports"]
            ]
        serving.result.result(timeout=5)
    for result in (one.result() for one in sent):
        assert result["tool"] == tool
        assert len(result["bytes_per_s"]) >= 2
        assert np.median(result["bytes_per_s"]) > 1e6


@needs_iperf3
def test_iperf3_says_why_it_failed():
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(LinkError, match=f"{LOOPBACK}:{port}.*refused"):
        throughput.send(quiet(), LOOPBACK, port, throughput.IPERF3, 1.0, "")


@needs_iperf3
def test_iperf3_servers_end_with_their_job():
    with serving_iperf3(count=2, seconds=1.0) as serving:
        ports = serving.ready["ports"]
    serving.result.result(timeout=2)
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, port))


@needs_iperf3
def test_iperf3_servers_do_not_wait_for_ever(patience):
    with serving_iperf3(count=1, seconds=0.1) as serving, pytest.raises(LinkError, match="never began"):
        serving.result.result(timeout=5)


def test_a_device_without_iperf3_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LinkError, match="cannot start iperf3"):
        throughput.serve(quiet(), LOOPBACK, throughput.IPERF3, 1, 1.0)
    with pytest.raises(LinkError, match="cannot start iperf3"):
        throughput.send(quiet(), LOOPBACK, 5201, throughput.IPERF3, 1.0, "")
