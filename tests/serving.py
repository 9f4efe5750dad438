"""The serving end of a probe, in a thread of this process."""

import queue
from concurrent.futures import ThreadPoolExecutor

from backends.agent.main import AgentTask
from tests.running import HANG_S

LOOPBACK = "127.0.0.1"


class Serving:
    """A serving order in a thread of its own, from its first event on."""

    def __init__(self, function, order):
        events = queue.Queue()
        self.job = AgentTask(events.put)
        self._pool = ThreadPoolExecutor(1)
        self.result = self._pool.submit(function, self.job, order)
        self.result.add_done_callback(lambda _: events.put(None))
        self.ready = events.get(timeout=HANG_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.job.stopping.set()
        self._pool.shutdown()


def quiet():
    return AgentTask(lambda event: None)
