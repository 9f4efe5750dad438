"""This module runs tegrastats, which every Jetson has, and parses its lines.

Fields differ between boards, releases and users; unknown ones are skipped.
"""

import functools
import re
import subprocess
import threading
import time
from typing import IO, Dict, NamedTuple, Optional, Tuple

from profilers.file_tree import FileTree, Unavailable

INTERVAL_MS = 100
#: A program that says nothing for so long hangs.
SILENCE_S = 3.0
#: What tegrastats calls MB is 1024 kB of /proc/meminfo.
MIB = 1024 * 1024
#: What a temperature sensor says that is switched off.
OFF_C = -256.0

_CORES = re.compile(r"(?<!\S)(?:CPU|cpu) \[([^\]]*)\](?:@(\d{1,9}))?")
_CORE = re.compile(r"\s*(\d{1,9})%(?:@(\d{1,9}))?")
#: JetPack 7 appends a second value: ``cpu@52.968C/52.968C``.
_TEMPERATURE = re.compile(r"(?<!\S)([A-Za-z]\w*)@(-?\d{1,9}(?:\.\d{1,9})?)C(?:/\S*C)?(?!\S)")
#: JetPack 5 states both engines of an Orin's GPU, ``GR3D_FREQ`` and ``GR3D2_FREQ``; Thor states
#: clocks without a load.
_GPU = re.compile(r"(?<!\S)GR3D2?(?:_FREQ)? (?:(\d{1,9})%)?(?:@\[?([\d,]{1,99})\]?)?")
_RAIL = re.compile(r"(?<!\S)([A-Za-z][\w.+-]*) (-?\d{1,9})(?:mW)?/(-?\d{1,9})(?:mW)?(?:/-?\d{1,9}(?:mW)?)*(?!\S)")


class Activity(NamedTuple):
    """Busy share (0..1) and clock in Hz; None where the line has no clock."""

    share: Optional[float]
    hz: Optional[float]


class Power(NamedTuple):
    """Watts of a rail: now, and the mean since the program was started."""

    now_w: float
    average_w: float


class Line(NamedTuple):
    """The fields of one line; None, or absent, where the line has none.

    cores: in order; None for a core that is switched off.
    emc: memory controller; without root its share is 0 and its clock None, which means unknown.
    rails: watts by the board's name of the rail.
    """

    ram_used_bytes: Optional[int]
    ram_total_bytes: Optional[int]
    swap_used_bytes: Optional[int]
    swap_total_bytes: Optional[int]
    cores: Tuple[Optional[Activity], ...]
    emc: Optional[Activity]
    gpu: Optional[Activity]
    temperatures_c: Dict[str, float]
    rails: Dict[str, Power]

    @property
    def counters(self) -> Dict[str, float]:
        """The values of f_gpu, f_emc (Hz) and u_gpu (0..1) in this line.

        ``profilers.counters`` defines them.
        """
        told = {
            "f_gpu": self.gpu and self.gpu.hz,
            "u_gpu": self.gpu and self.gpu.share,
            "f_emc": self.emc and self.emc.hz,
        }
        return {name: value for name, value in told.items() if value is not None}


def parse(line: str) -> Line:
    """Parse a line of tegrastats of any release, with any prefix.

    Several clocks of one GPU are averaged; clocks of 0 are skipped unless all are 0. Rails are
    ``NAME now/average``, in mW with or without the unit, with any number of further values. On an
    AGX Xavier rails share the names of temperatures (``GPU@32C``, ``GPU 0/0``).
    """
    ram, swap = _memory(line, "RAM"), _memory(line, "SWAP")
    temperatures_c = {name: float(degrees) for name, degrees in _TEMPERATURE.findall(line)}
    return Line(
        ram[0],
        ram[1],
        swap[0],
        swap[1],
        _cores(line),
        _activity(line, "EMC"),
        _gpu(line),
        {name: degrees for name, degrees in temperatures_c.items() if degrees != OFF_C},
        {name: Power(int(now) / 1e3, int(average) / 1e3) for name, now, average in _RAIL.findall(line)},
    )


def _memory(line: str, name: str) -> Tuple[Optional[int], Optional[int]]:
    match = re.search(r"(?<!\S)%s (\d{1,9})/(\d{1,9})MB" % name, line)
    return (int(match.group(1)) * MIB, int(match.group(2)) * MIB) if match else (None, None)


def _cores(line: str) -> Tuple[Optional[Activity], ...]:
    match = _CORES.search(line)
    if match is None:
        return ()
    found = (_CORE.match(part) for part in match.group(1).split(","))
    return tuple(core and Activity(int(core.group(1)) / 100.0, _hz(core.group(2) or match.group(2))) for core in found)


def _activity(line: str, name: str) -> Optional[Activity]:
    match = re.search(r"(?<!\S)%s(?:_FREQ)? (\d{1,9})%%(?:@\[?([\d,]{1,99})\]?)?" % name, line)
    return Activity(int(match.group(1)) / 100.0, _hz(match.group(2))) if match else None


def _gpu(line: str) -> Optional[Activity]:
    """All engines of the GPU as one: the load of the busiest, and the mean clock of those that run.

    An Orin Nano has a single engine; its tegrastats states a clock of 0 for the second.
    """
    found = [match for match in _GPU.findall(line) if any(match)]
    shares = [int(share) / 100.0 for share, _ in found if share]
    clocks = ",".join(clock for _, clock in found)
    return Activity(max(shares) if shares else None, _hz(clocks)) if found else None


def _hz(megahertz: Optional[str]) -> Optional[float]:
    """The mean of clocks in MHz, separated by commas; those of 0 are skipped unless all are 0."""
    clocks = [int(part) for part in (megahertz or "").split(",") if part]
    running = [clock for clock in clocks if clock] or clocks[:1]
    return 1e6 * sum(running) / len(running) if running else None


class Tegrastats:
    """The program: the first read starts it, ``close`` ends it."""

    def __init__(self, tree: FileTree, program: str = "tegrastats") -> None:
        self._tree = tree
        self._program = program
        self._lock = threading.Lock()
        self._process: Optional["subprocess.Popen[str]"] = None
        self._newest: Optional[Tuple[float, Line]] = None
        self._first = threading.Event()

    def newest(self) -> Line:
        """The newest line. Waits only for the first one. Raises Unavailable."""
        if self._tree.emulated:
            raise Unavailable("tegrastats does not read an emulated device")
        with self._lock:
            if self._process is None:
                self._process = self._start()
            process = self._process
        self._first.wait(SILENCE_S)
        newest = self._newest
        if newest is None or process.poll() is not None or time.monotonic() - newest[0] > SILENCE_S:
            raise Unavailable("tegrastats has ended or stays silent")
        return newest[1]

    def read(self, counter: str) -> float:
        """A counter of the newest line. Raises Unavailable."""
        counters = self.newest().counters
        if counter not in counters:
            raise Unavailable("tegrastats does not state it (without root it leaves clocks out)")
        return counters[counter]

    def close(self) -> None:
        """End the program. Idempotent."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                process.kill()
                process.wait()
                self._first.clear()
                self._newest = None

    def _start(self) -> "subprocess.Popen[str]":
        command = [self._program, "--interval", str(INTERVAL_MS)]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                universal_newlines=True,
                errors="replace",
            )
        except OSError as error:
            raise Unavailable("tegrastats cannot be run: %s" % error.strerror) from None
        threading.Thread(target=self._follow, args=(process, process.stdout), daemon=True).start()
        return process

    def _follow(self, process: "subprocess.Popen[str]", lines: IO[str]) -> None:
        with lines:
            for line in lines:
                with self._lock:
                    if self._process is not process:
                        return  # closed since
                    self._newest = (time.monotonic(), parse(line))
                    self._first.set()


def shared(tree: FileTree) -> Tegrastats:
    """The one program of this process: counters and power sensor read the same lines."""
    return _shared(tree.root)


@functools.lru_cache(maxsize=None)
def _shared(root: str) -> Tegrastats:
    return Tegrastats(FileTree(root))
