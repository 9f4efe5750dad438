"""Commands of ``planner`` on a lab of equal devices, which is there for as long as a benchmark."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from planner.paths import RunFolder

COMMAND = "from planner.cli.main import main; main()"
#: A name that no other lab has.
LAB = f"benchmark-{os.getpid()}"


class Failed(Exception):
    """A command has failed; the text is what it said."""


class LabCommands:
    """Runs ``planner`` in the folder that has the lab's fleet file."""

    def __init__(self, folder: Path, devices: Sequence[str]) -> None:
        self.folder = folder
        self.devices = devices

    @property
    def newest_run(self) -> RunFolder:
        """The folder of the last `planner train`."""
        return RunFolder(max((self.folder / "runs").iterdir(), key=lambda each: each.stat().st_mtime_ns))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Raises Failed with what the command said."""
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, *arguments], cwd=self.folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Failed(f"planner {' '.join(arguments)}: {done.stderr.strip()}")
        return done


@contextmanager
def lab_of(devices: int, cpus: float, rate: str) -> Iterator[LabCommands]:
    """A lab of devices with so many cores and links of that rate (root)."""
    with tempfile.TemporaryDirectory() as folder:
        commands = LabCommands(Path(folder), [f"d{number}" for number in range(devices)])
        entries = (f'[devices.{name}]\nkind = "pc"\ncpus = {cpus}\nrate = "{rate}"\n' for name in commands.devices)
        (commands.folder / "lab.toml").write_text("\n".join(entries))
        with ExitStack() as stack:
            stack.callback(commands.run, "lab", "down", "--name", LAB)
            commands.run("lab", "up", "lab.toml", "--name", LAB)
            yield commands
