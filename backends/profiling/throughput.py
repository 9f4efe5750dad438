"""How fast a link carries plain bytes, measured by an order at each of its two ends.

One serves and tells its ports as an event, the other sends and has the result.
"""

import binascii
import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict

from backends.network import framing
from backends.profiling import iperf3
from profilers import links

IPERF3 = "iperf3"
PYTHON = "python"


def serve(job: Any, address: str, tool: str, count: int, seconds: float) -> None:
    """Receive from ``count`` senders at once. Event: {"ports": [one a sender], "token": for tool python}."""
    if tool == IPERF3:
        iperf3.serve(job, address, count, seconds)
    else:
        _serve_python(job, address, count, seconds)


def send(job: Any, address: str, port: int, tool: str, seconds: float, token: str) -> Dict[str, Any]:
    """Send for some seconds; {"tool", "bytes_per_s": what the receiver got in each interval}."""
    rates = iperf3.send(address, port, seconds) if tool == IPERF3 else links.send(address, port, token, seconds)
    return {"tool": tool, "bytes_per_s": rates}


def _serve_python(job: Any, address: str, count: int, seconds: float) -> None:
    token = binascii.hexlify(os.urandom(16)).decode()
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(framing.listen(address)) for _ in range(count)]
        job.emit({"ports": [listener.getsockname()[1] for listener in listeners], "token": token})
        with ThreadPoolExecutor(count) as pool:
            receivers = [
                pool.submit(links.receive, listener, token, seconds, job.stopping.is_set) for listener in listeners
            ]
        for receiver in receivers:
            receiver.result()
