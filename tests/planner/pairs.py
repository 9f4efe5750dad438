"""Training runs of two local devices as processes of their own."""

from pathlib import Path

from backends.training import checkpoint
from tests.running import FASHION, Command, fleet_file, plan_file, tiny_model

STEPS = 200


def new_pair(folder: Path) -> Path:
    """Make a folder with a fleet of two devices and a plan for both."""
    fleet_file(folder, {"desktop": {}, "tx2": {}})
    plan_file(folder / "plan.json", tiny_model(folder), ("desktop", "tx2"), STEPS)
    return folder


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
