"""Throughput of a link, both ends in this process, over loopback."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from backends.profiling import throughput
from backends.protocol.orders import SendThroughput, ServeThroughput
from tests.running import HANG_S
from tests.serving import LOOPBACK, Serving, quiet

needs_iperf3 = pytest.mark.skipif(
    shutil.which("iperf3") is None and "CI" not in os.environ, reason="no iperf3 on this machine"
)


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
        server.result.result(timeout=HANG_S)
    for result in (one.result() for one in sent):
        assert result.tool == tool
        assert len(result.bytes_per_s) >= 2
        assert np.median(result.bytes_per_s) > 1e6
        costs_s = (result.send_cpu_s, result.receive_cpu_s)
        assert costs_s == (None, None) if tool == throughput.PYTHON else all(0 < each < 1e-6 for each in costs_s)
