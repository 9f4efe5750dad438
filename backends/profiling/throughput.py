"""A throughput probe sends plain bytes over a link, with one order at each of its ends."""

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from backends.network import framing
from backends.profiling import iperf3, python_sender
from backends.protocol.events import ThroughputListening
from backends.protocol.orders import SendThroughput, ServeThroughput
from profilers.records.links import LinkThroughput

IPERF3 = iperf3.NAME
PYTHON = "python"


def serve(task: Any, order: ServeThroughput) -> None:
    """Receive from several senders at once; emits a port for each, and the token for python."""
    if order.tool == IPERF3:
        iperf3.serve(task, order.address, order.count, order.seconds)
    else:
        _serve_python(task, order)


def send(task: Any, order: SendThroughput) -> LinkThroughput:
    """Send for some seconds."""
    if order.tool == IPERF3:
        return iperf3.send(order.address, order.port, order.seconds)
    return LinkThroughput(PYTHON, tuple(python_sender.send(order.address, order.port, order.token, order.seconds)))


def _serve_python(task: Any, order: ServeThroughput) -> None:
    token = os.urandom(16).hex()
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(framing.listen(order.address)) for _ in range(order.count)]
        task.emit(ThroughputListening(tuple(listener.getsockname()[1] for listener in listeners), token))
        with ThreadPoolExecutor(order.count) as pool:
            receivers = [
                pool.submit(python_sender.receive, listener, token, order.seconds, task.stopping.is_set)
                for listener in listeners
            ]
        for receiver in receivers:
            receiver.result()
