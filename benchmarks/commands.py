"""Commands of ``planner`` in a folder, and on a lab that is there for one benchmark."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from planner.paths import RunFolder

PLANNER = ("-c", "from planner.cli.main import main; main()")
LAB_COMMAND = ("-m", "benchmarks.lab")
ROOT = Path(__file__).resolve().parents[1]
#: A name that no other lab has.
LAB = f"b{os.getpid()}"


class Failed(Exception):
    """A command has failed; the text is what it said."""


class Commands:
    """Runs ``planner`` in a folder, which has the fleet file.

    environment: variables besides those of this process.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._environment = {**os.environ, **(environment or {})}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Raises Failed with what the command said."""
        return self._run(PLANNER, *arguments)

    def _run(self, program: Sequence[str], *arguments: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, *program, *arguments],
            cwd=self.folder, env=self._environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise Failed(f"{'planner' if program is PLANNER else 'lab'} {' '.join(arguments)}: {done.stderr.strip()}")
        return done

    @property
    def newest_run(self) -> RunFolder:
        """The folder of the last `planner train`."""
        return RunFolder(max((self.folder / "runs").iterdir(), key=lambda each: each.stat().st_mtime_ns))


class LabCommands(Commands):
    """Commands in the folder that has the fleet file of a lab."""

    def __init__(self, folder: Path, devices: Sequence[str]) -> None:
        super().__init__(folder, {"PYTHONPATH": str(ROOT)})
        self.devices = devices

    def lab(self, *arguments: str) -> None:
        """Run a command of the lab. Raises Failed with what it said."""
        self._run(LAB_COMMAND, *arguments, "--name", LAB)


@contextmanager
def lab_of(devices: int, cpus: float, rate: str) -> Iterator[LabCommands]:
    """A lab of devices with so many cores and links of that rate (root)."""
    names = [f"d{number}" for number in range(devices)]
    entries = (f'[devices.{name}]\nkind = "pc"\ncpus = {cpus}\nrate = "{rate}"\n' for name in names)
    with tempfile.TemporaryDirectory() as folder, lab_in(Path(folder), names, "\n".join(entries)) as commands:
        yield commands


@contextmanager
def lab_in(folder: Path, names: Sequence[str], spec: str) -> Iterator[LabCommands]:
    """The lab of a spec (root), whose files and results are in a folder.

    SIGTERM takes it down, too.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    with ExitStack() as stack:
        commands = LabCommands(folder, names)
        (folder / "lab.toml").write_text(spec)
        stack.callback(commands.lab, "down")
        commands.lab("up", "lab.toml")
        yield commands
