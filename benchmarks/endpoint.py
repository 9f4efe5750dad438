"""An endpoint is one end of a training run in its own process, around a model of a set cost.

Used by other benchmarks; reads its orders as one JSON object on standard input and answers in JSON
lines.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from backends.data.loader import ArraySamples, BatchLoader
from backends.frameworks.base import Replica
from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import OptimizerSettings, Slots
from backends.network import framing
from backends.protocol.events import TimeSpent
from backends.protocol.member_specs import Identity
from backends.server.parameter_server import ParameterServer
from backends.server.worker import Worker
from backends.training.lr_schedule import RateSchedule
from backends.training.run_settings import RunSettings
from backends.training.run_spec import Checkpoints, RunSpec
from profilers.records.json_values import json_value

#: Longer than any benchmark: nothing here is about heartbeats.
SILENCE_S = 3600.0


class Sleeper(Replica):
    """``parameters`` float32 elements whose gradient takes ``gradient_s`` and no processor."""

    accelerator = "sleep"
    state_variables = ()

    def __init__(self, parameters: int, gradient_s: float, spin: bool) -> None:
        self._spin = spin
        self.variables = (Variable("all", (parameters,), 0, parameters),)
        self.weights = np.zeros(parameters, np.float32)
        self.gradients = np.zeros(parameters, np.float32)
        self.state = np.zeros(0, np.float32)
        self._gradient_s = gradient_s

    def gradient(self, images: np.ndarray, labels: np.ndarray, rate: float = 1.0, weight_decay: float = 0.0) -> float:
        end = time.perf_counter() + self._gradient_s
        if not self._spin:
            time.sleep(self._gradient_s)
        while time.perf_counter() < end:
            pass
        return 0.0

    def gradient_norm(self) -> float:
        return 0.0

    def rescale(self, factor: float, decay: float) -> None:
        pass

    def fetch(self) -> None:
        pass

    def load(self) -> None:
        pass

    def update(self, optimizer: OptimizerSettings) -> None:
        raise NotImplementedError("the server updates")

    def evaluate(self, images: np.ndarray, labels: np.ndarray) -> tuple[float, int]:
        return 0.0, len(labels)

    def slots(self, kind: str) -> Slots:
        raise NotImplementedError("the server has them")

    def set_slots(self, slots: Slots) -> None:
        raise NotImplementedError("the server has them")


class Endpoint(AbstractContextManager["Endpoint"]):
    """The other side: starts an endpoint behind a command prefix, and ends it."""

    def __init__(self, prefix: Sequence[str], orders: dict[str, Any]) -> None:
        command = [*prefix, sys.executable, str(Path(__file__).resolve())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(orders))
        self._process.stdin.close()

    def answer(self) -> Any:
        """Its next answer. Raises RuntimeError where it ended without; why is on standard error."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("an endpoint of a run ended before its answer")
        return json.loads(line)

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def serve(address: str, identity: Sequence[str], steps: int) -> None:
    """Serve one run of ``steps`` steps; answers its port, then its account."""
    listener = framing.listen(address)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "checkpoint")
        work = RunSpec(
            RunSettings(steps=steps), OptimizerSettings(), RateSchedule(), Checkpoints(path), heartbeat_s=SILENCE_S
        )
        server = ParameterServer(work, Identity(*identity), lambda event: None)
        _say({"port": listener.getsockname()[1]})
        _say(json_value(server.run(listener, lambda: False)))


def work(address: str, port: int, identity: Sequence[str], parameters: int, gradient_s: float, spin: bool) -> None:
    """Work in a run to its end and return the monotonic times at which steps ended."""
    tls = framing.context(Identity(*identity), server_side=False)
    connection = framing.connect(address, port, tls, SILENCE_S)
    batch = np.zeros((1, 1), np.uint8), np.zeros(1, np.int64)
    ends: list[float] = []

    def note(spent: TimeSpent) -> None:
        if spent.steps > len(ends):
            ends.append(time.monotonic())

    Worker(
        connection, Sleeper(parameters, gradient_s, spin), BatchLoader(ArraySamples(*batch), 1, 0), ArraySamples(*batch)
    ).run(note)
    connection.close()
    _say({"ends_s": ends})


def _say(answer: Any) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    {"serve": serve, "work": work}[asked.pop("role")](**asked)
