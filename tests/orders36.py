"""Carry out the orders of whole runs, a host and its workers in threads, on this Python, be it 3.6.

Reads a list of {"name", "host": order, "members": [orders]} as JSON on standard input, and answers
each with a line of the run's account or of what went wrong. The framework is least squares, in
numpy.
"""

import json
import sys
import threading
import types

import numpy as np

from backends.agent.main import AgentTask
from backends.agent.verbs import ORDERS
from backends.frameworks import base
from backends.frameworks.base import Replica
from backends.frameworks.layout import Variable
from backends.jobs.job import Job as TrainedJob
from backends.network.framing import WireError
from backends.optimizers.sgd import Momentum
from backends.protocol.json_messages import decode
from backends.training.run_orders import HostRun, RunPeer, RunWorker
from profilers.records.json_values import json_value

LIMIT_S = 60.0
PIXELS = 4
MEMBERS = (RunWorker, RunPeer)


class LeastSquares(Replica):
    """Labels from the pixels' sums: (pixels,) weights and an offset."""

    accelerator = "cpu"
    variables = (Variable("kernel", (PIXELS, 1), 0, PIXELS), Variable("bias", (1,), PIXELS, 1))
    state_variables = ()

    def __init__(self):
        self.weights = np.zeros(PIXELS + 1, np.float32)
        self.gradients = np.zeros(PIXELS + 1, np.float32)
        self.state = np.zeros(0, np.float32)
        self._momentum = Momentum(self.variables)

    def _inputs(self, images):
        return np.hstack([images.reshape(len(images), -1) / np.float32(255), np.ones((len(images), 1), np.float32)])

    def gradient(self, batch, rate=1.0, weight_decay=0.0, adds=False):
        images, labels = batch
        inputs = self._inputs(images)
        missed = inputs @ self.weights - labels
        self.gradients[:] = adds * self.gradients + rate * (
            inputs.T @ missed / len(labels) + weight_decay * self.weights
        )
        return float((missed**2).mean() / 2)

    def gradient_norm(self):
        return float(np.linalg.norm(self.gradients))

    def rescale(self, factor, decay):
        self.gradients[:] = factor * self.gradients + decay * self.weights

    def fetch(self):
        pass

    def load(self):
        pass

    def update(self, optimizer):
        self._momentum.apply(self.weights, self.gradients, optimizer)

    def evaluate(self, batch):
        images, labels = batch
        missed = self._inputs(images) @ self.weights - labels
        return float((missed**2).mean() / 2), {"accuracy": float((abs(missed) < 0.5).mean())}

    def slots(self, kind):
        return self._momentum.slots

    def set_slots(self, slots):
        self._momentum.slots = slots


class Job(AgentTask):
    """One order, told to go when it is made."""

    def __init__(self):
        super().__init__(self._note)
        self.heard = threading.Condition()
        self.events = []
        self.go.set()

    def _note(self, event):
        with self.heard:
            self.events.append(event)
            self.heard.notify_all()

    def port(self):
        with self.heard:
            assert self.heard.wait_for(lambda: self.events, LIMIT_S)
        return self.events[0].port


def carry_out(run):
    """The account of a run; raises what one of its threads raises.

    Where nobody waits for others, a worker may come when another has made all steps.
    """
    results = {}
    order = decode(run["host"], [HostRun])

    def begin(name, work, *args):
        def call():
            try:
                results[name] = work(*args)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this run's result
                results[name] = error

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        return thread

    host = Job()
    threads = [begin("host", ORDERS[type(order)], host, order)]
    for number, value in enumerate(run["members"]):
        member = decode(value, MEMBERS)
        member = member._replace(host=member.host._replace(port=host.port()))
        threads.append(begin(number, ORDERS[type(member)], Job(), member))
    for thread in threads:
        thread.join(LIMIT_S)
    account = results["host"]
    for result in results.values():
        too_late = isinstance(result, WireError) and "cannot reach" in str(result)
        if isinstance(result, Exception) and not (too_late and getattr(account, "finished", False)):
            raise result
    return account


def main():
    framework = types.ModuleType("least_squares")
    framework.accelerator = lambda: ("cpu", "numpy")
    framework.known_job = lambda *_: TrainedJob(LeastSquares(), lambda *_: (None, None), lambda *_: 0.0, {})
    framework.replica = lambda made: made.model
    sys.modules["least_squares"] = framework
    base.FRAMEWORKS["least_squares"] = "least_squares"
    for run in json.load(sys.stdin):
        try:
            answer = carry_out(run)
        except Exception as error:  # noqa: BLE001 - the test shows it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(dict(json_value(answer), name=run["name"])), flush=True)


if __name__ == "__main__":
    main()
