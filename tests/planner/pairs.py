"""Training runs of two local devices as processes of their own, with a framework in numpy."""

from pathlib import Path
from typing import Any

from backends.training import checkpoint
from tests.running import FASHION, ROOT, Command, fleet_file, plan_file

STEPS = 200
NAMES = ("desktop", "tx2")
#: Hosts of each kind: with a strategy (or an engine) on so many devices.
KINDS = {
    "server": ({"strategy": "parameter-server:sync=synchronous"}, NAMES),
    "peers": ({"strategy": "allreduce"}, NAMES),
    "ranks": ({"engine": "torch"}, NAMES),
    "alone": ({}, NAMES[:1]),
}

#: A softmax regression whose worker makes no more steps than a file says while it is there, and
#: hangs in its sixth step where it is the one that removes another file.
MODEL = """
import os, time
from backends.training.compute_clock import clock_of
from tests.backends.fakes import Softmax

def most_steps():
    try:
        with open({hold!r}) as file:
            return int(file.read())
    except FileNotFoundError:
        return float("inf")

def is_first_to_remove(path):
    try:
        os.unlink(path)
        return True
    except FileNotFoundError:
        return False

class Held(Softmax):
    steps = 0

    def gradient(self, *args, **options):
        self.steps += 1
        while self.steps > most_steps():
            time.sleep(0.02)
            clock_of(self).begin()  # to be held is not to hang
        while self.steps == 6 and is_first_to_remove({hang!r}):
            time.sleep(3600.0)
        return super().gradient(*args, **options)

def tiny():
    return Held(input_shape=(28, 28, 1), classes=10), (28, 28, 1)
"""


def new_pair(folder: Path) -> Path:
    """Make a folder with a fleet of two devices and a plan for both."""
    (folder / "tiny.py").write_text(MODEL.format(hold=str(folder / "hold"), hang=str(folder / "hang")))
    pair_fleet(folder)
    new_plan(folder, "desktop", "tx2")
    return folder


def pair_fleet(folder: Path, **entries: dict[str, Any]) -> None:
    """Write the fleet file; ``entries``: what a device has besides its environment."""
    numpy_alone = {"PYTHONPATH": f"{ROOT / 'tests' / 'numpy_framework'}:{ROOT}"}
    fleet = {name: {**entries.get(name, {})} for name in ("desktop", "tx2")}
    for entry in fleet.values():
        entry["environment"] = {**numpy_alone, **entry.get("environment", {})}
    fleet_file(folder, fleet)


def new_plan(folder: Path, *names: str, steps: int = STEPS) -> Path:
    """Write the plan of a run on these devices."""
    return plan_file(folder / "plan.json", f"{folder}/tiny.py:tiny", names, steps)


def hold(folder: Path, steps: int = 40) -> None:
    """Before a run: let no worker go beyond so many steps until ``release``.

    What is done to a run in the meantime comes before its end, however slow this machine is.
    """
    (folder / "hold").write_text(str(steps))


def release(folder: Path) -> None:
    """Let held workers go on."""
    (folder / "hold").unlink()


def start(folder: Path, *arguments: str) -> Command:
    return Command(folder, *training(*arguments))


def training(*arguments: str) -> tuple[str, ...]:
    return ("train", "--data", str(FASHION), "--heartbeat", "2", "--checkpoint-every", "20", *arguments)


def run_folders(folder: Path) -> list[Path]:
    return sorted((folder / "runs").iterdir())


def saved_step(folder: Path) -> int:
    path = folder / "checkpoint.npz"
    return int(checkpoint.peek(str(path))["step"]) if path.exists() else 0


def has_checkpoint(folder: Path) -> bool:
    return any(saved_step(each) > 0 for each in run_folders(folder))


def left_files(folder: Path) -> list[Path]:
    """Files of runs that are still on the devices."""
    return list(folder.glob("cache-*/planner/run-*"))


def one_line(command: Command) -> str:
    """The message with which a command failed, the only one of its kind."""
    said = [line for line in command.errors.splitlines() if line.startswith("planner: ")]
    assert said == [command.last_line], command.errors
    return said[0]
