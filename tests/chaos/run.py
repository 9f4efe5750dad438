"""One chaos run: set up, hurt, watched to its end, searched for what is left, and resumed."""

import json
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from backends import models
from backends.agent.claims import remove_dead
from backends.frameworks.optimizer import MOMENTUM as VELOCITY
from backends.training import checkpoint
from tests.backends.fakes import images
from tests.chaos import devices, journal, scenario, told
from tests.chaos.devices import Devices
from tests.chaos.injection import Injector, disk, prepare_job
from tests.chaos.journal import Replay, State
from tests.chaos.observed import Ended, Observed
from tests.chaos.scenario import DEVICES, HEARTBEAT_S, MOMENTUM, RATE, Scenario
from tests.planner.plans import replan
from tests.running import HANG_S, MARK, ROOT, Command, fleet_file, plan_file

HERE = Path(__file__).resolve().parent
#: Seconds after which agents count as left behind. Silences of 30 s are in order.
GONE_S = 90.0
PAUSE_S = 0.02
#: What a run leaves in a device's cache for the next one, by its content.
KEPT = ("agent-", "data-", "model-", "project-", "file-")
#: A user's job. Its errors pass through lines of its own.
JOB = """
from types import SimpleNamespace
from torch.nn import functional
from tests.chaos.torch_job import Journalled, Samples

class Model(Journalled):
    def forward(self, x):
        return super().forward(x)

class Own(Samples):
    def __getitem__(self, place):
        return super().__getitem__(place)

def job():
    return SimpleNamespace(model=Model(), train=Own(240, 1), test=Own(60, 2), loss=functional.cross_entropy)
"""


def carry_out(case: Scenario, folder: Path, fleet: Devices) -> Observed:
    """Run a scenario in an empty folder. All devices are healthy before, and after."""
    prepare(case, folder, fleet)
    ports = {name: fleet.ports(name) for name in case.devices}
    began_s = time.monotonic()
    with ExitStack() as stack:
        if case.fault.kind in (scenario.FULL_DISK, scenario.OPERATOR_DISK):
            stack.enter_context(devices.small_disks([disk(case, folder)]))
        command = _start(folder, *_arguments(case))
        injector = Injector(case, folder, fleet, command)
        noticed_s, ended_s, in_time = watch(command, injector, folder)
        left = left_behind(case, folder, fleet, ports)
        if case.fault.kind != scenario.OPERATOR_KILLED:  # one that is killed cannot remove its own
            left += unfinished(folder)
        ended = _ended(case, command, folder, None, in_time)
        reached = _reached(case, folder, ended)
        resumed = None
        if command.popen.returncode != 0 and ended.saved:
            resumed = _resume(case, folder)
            left += left_behind(case, folder, fleet, ports) + unfinished(folder)
    at_s = injector.at_s
    written, carried = told.checkpoints(folder, at_s or ended_s)
    return Observed(
        ended, reached, written, carried, tuple(dict.fromkeys(left)), resumed,
        injected=at_s is not None and at_s < ended_s,
        noticed_s=None if at_s is None or noticed_s is None else noticed_s - at_s,
        ended_s=None if at_s is None else ended_s - at_s,
        seconds=time.monotonic() - began_s,
    )  # fmt: skip


def prepare(case: Scenario, folder: Path, fleet: Devices) -> None:
    """Write data, job, fleet file and plan."""
    for name in DEVICES:
        fleet.heal(name)
    (folder / "data").mkdir()
    train, test = images(240, 1), images(60, 2)
    arrays = dict(zip(("x_train", "y_train", "x_test", "y_test"), (*train, *test), strict=True))
    np.savez(folder / "data" / "images.npz", **arrays)
    model = write_model(case, folder)
    shared = {"PYTHONPATH": f"{HERE / 'device'}:{ROOT}", "OMP_NUM_THREADS": "1"}
    shared |= {"CHAOS_TORCH": "1"} if case.has_torch else {}
    entries = {
        name: {**fleet.entry(name), "environment": {**shared, "CHAOS_STEP_S": str(step_s)}}
        for name, step_s in zip(case.devices, case.steps_s, strict=True)
    }
    path = fleet_file(folder, entries)
    path.write_text(f'ssh_config = "{fleet.ssh_config}"\ntrusted_network = true\n{path.read_text()}')
    fingerprint = "as it was" if case.is_job else models.fingerprint(model)
    plan_file(folder / "plan.json", model, case.devices, case.steps, fingerprint)
    replan(folder, strategy=case.strategy, engine=case.engine, job=case.is_job)
    prepare_job(case, folder)


def write_model(case: Scenario, folder: Path) -> str:
    """Write the user's file; returns the name of the model or the job."""
    path = folder / "own" / "tiny.py"
    path.parent.mkdir()
    if case.is_job:
        path.write_text(JOB)
        return f"{path}:job"
    kind = "tests.chaos.torch_job import in_torch" if case.has_torch else "tests.chaos.job import in_numpy"
    path.write_text(f"from {kind} as tiny\n")
    return f"{path}:tiny"


def _arguments(case: Scenario) -> tuple[str, ...]:
    data = {} if case.is_job else {"data": "data"}
    options = data | {
        "heartbeat": HEARTBEAT_S, "checkpoint-every": case.checkpoint_every, "learning-rate": RATE,
        "momentum": MOMENTUM, "evaluate-every": case.steps // 12, "seed": case.seed,
    }  # fmt: skip
    return tuple(f"--{name}={value}" for name, value in options.items())


def _start(folder: Path, *arguments: str) -> Command:
    operator = {MARK: f"{folder}/{scenario.OPERATOR}", "PYTHONPATH": f"{HERE / 'device'}:{ROOT}"}
    return Command(folder, "train", "--json", *arguments, **operator)


def watch(command: Command, injector: Injector, folder: Path) -> tuple[float | None, float, bool]:
    """Until the command's end: when the fault was noticed, when it ended, and whether by itself."""
    noticed_s, until_s = None, time.monotonic() + HANG_S
    while command.popen.poll() is None and time.monotonic() < until_s:
        injector.look()
        if noticed_s is None and injector.at_s is not None and told.has_noticed(folder, injector.at_s):
            noticed_s = time.time()
        time.sleep(PAUSE_S)
    ended_s, in_time = time.time(), command.popen.poll() is not None
    if not in_time:
        command.popen.kill()
    command.ended()
    return noticed_s or (ended_s if command.popen.returncode else None), ended_s, in_time


def _resume(case: Scenario, folder: Path) -> Ended:
    """The run that goes on from the newest checkpoint, on healthy devices."""
    (first,) = folder.glob("runs/*/")
    saved = checkpoint.read(str(first / "checkpoint.npz"))
    start = State(saved.meta["step"], journal.in_order(saved.weights, saved.layout), _velocity(saved))
    for pattern in ("journal-*", "*.slow", "*.clock", "job-fault.json", "*/filler", "*/planner/run-*"):
        for path in folder.glob(pattern):
            path.unlink()
    command = _start(folder, *_arguments(case), f"--resume={first}")
    until_s = time.monotonic() + HANG_S
    while command.popen.poll() is None and time.monotonic() < until_s:
        time.sleep(PAUSE_S)
    in_time = command.popen.poll() is not None
    if not in_time:
        command.popen.kill()
    command.ended()
    return _ended(case, command, folder, start, in_time)


def _ended(case: Scenario, command: Command, folder: Path, start: State | None, in_time: bool) -> Ended:
    newest = max(folder.glob("runs/*/"), default=folder)
    saved = _saved(newest / "checkpoint.npz")
    result = newest / "result.json"
    made = json.loads(result.read_text())["steps_made"] if result.exists() else None
    replay = _replay(case, folder, start, saved) if case.replayable and saved is not None else None
    step = None if saved is None else saved.meta["step"]
    elsewhere = [_saved(path) for path in folder.glob("cache-*/planner/run-*") if str(path) in command.errors]
    named = max((each.meta["step"] for each in elsewhere if each is not None), default=None)
    return Ended(command.popen.returncode if in_time else None, command.errors, made, step, named, replay)


def _saved(path: Path) -> checkpoint.Checkpoint | None:
    try:
        return checkpoint.read(str(path))
    except (OSError, ValueError):
        return None


def _velocity(saved: checkpoint.Checkpoint) -> np.ndarray:
    return journal.in_order(saved.slots[VELOCITY], saved.layout)


def _replay(case: Scenario, folder: Path, start: State | None, saved: checkpoint.Checkpoint) -> Replay:
    end = State(saved.meta["step"], journal.in_order(saved.weights, saved.layout), _velocity(saved))
    return journal.replay(journal.read(folder), _labels(), RATE, MOMENTUM, start, end, case.steps)


def _reached(case: Scenario, folder: Path, ended: Ended) -> int:
    """The latest step by what the host told, and by the journal.

    Devices go on until they notice that their operator was killed: those steps are in no log.
    """
    replay = None if case.fault.kind == scenario.OPERATOR_KILLED else ended.replay
    return max(told.latest_step(folder), 0 if replay is None or replay.problem else replay.furthest)


def _labels() -> dict[bytes, int]:
    pixels, labels = images(240, 1)
    return {one.tobytes(): int(label) for one, label in zip(pixels, labels, strict=True)}


def left_behind(case: Scenario, folder: Path, fleet: Devices, ports: dict[str, set[int]]) -> list[str]:
    """What the end of a run has left, once a device that was hurt is back."""
    for name in case.devices:
        fleet.heal(name)
    until_s = time.monotonic() + GONE_S
    while any(map(fleet.running, case.devices)) and time.monotonic() < until_s:
        time.sleep(PAUSE_S)
    found = []
    for name in case.devices:
        for process, command_line in fleet.running(name).items():
            found.append(f"process of {name}: {command_line}")
            devices.signal_one(process, signal.SIGKILL)
    for name in case.devices:
        found += [f"port {each} of {name}" for each in sorted(fleet.ports(name) - ports[name])]
        found += [f"file {path.relative_to(folder)}" for path in _files(folder / f"cache-{name}")]
    return found


def unfinished(folder: Path) -> list[str]:
    """Files of the operator that were on their way when a run ended."""
    return [f"file {path.relative_to(folder)}" for path in folder.glob("runs/*/*.part")]


def _files(cache: Path) -> list[Path]:
    """What no later run has a use for, nor would the next agent there remove."""
    if (cache / "planner").exists():
        remove_dead(str(cache / "planner"))
    return [path for path in sorted(cache.glob("planner/*")) if not path.name.startswith(KEPT)]
