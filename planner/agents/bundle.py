"""The agent is packed into one file, named by its hash, and copied to devices that lack it."""

import hashlib
import io
import os
import shlex
import zipfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import backends
import profilers
from backends.agent import bootstrap, guardian
from backends.frameworks.device import CPU, DEVICE_VARIABLE
from planner.errors import DeviceLostError, RemoteError
from planner.fleet.device import Device
from planner.remote.base import Process
from profilers.sensors import external_meters

MARK = b"planner:"
LOADED, CUT = "load", "cut"
#: What the bootstrap says where it starts no agent; other words are those of a host called planner.
REFUSALS = ("old", CUT, "terminal", "unsafe", "fail")
#: What helps where a device cannot keep a file.
FREE_SPACE = "free some space there, or set XDG_CACHE_HOME in `environment`"
#: Variables without which a Python may not start. All others come over its standard input, because
#: every user of a device can read the command lines there.
STARTS_PYTHON = ("PATH", "LD_LIBRARY_PATH", "PYTHONHOME")
#: How fish begins; the lines that follow show where in the command it is.
_UNKNOWN = "Unknown command"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # equal sources make equal bytes
_MAIN = "import sys\n\nfrom backends.agent.main import main\n\nmain(*sys.argv[1:])\n"

#: The first command, which a device's login shell reads: short, one line, without quotes. It says
#: that Python runs, and takes the bootstrap from standard input. Until then nothing is sent there,
#: so that no start-up file of a shell swallows it. Where less comes, it says that too. Python has
#: no ``stdin`` where it was closed.
LOADER = (
    "import os;from sys import argv,stdin;os.write(1,(argv[1]+os.linesep).encode());"
    "come=str().join(os.read(0,1).decode()for _ in range(int(argv[2])*bool(stdin)));"
    "whole=len(come)==int(argv[2]);whole or os.write(1,(argv[3]+os.linesep).encode());exec(come*whole)"
)


class Archive(NamedTuple):
    """The agent's zip file and the SHA-256 of its content."""

    data: bytes
    digest: str


@lru_cache(maxsize=1)
def agent_archive() -> Archive:
    """Pack profilers/ and backends/ into an executable zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", _EPOCH), _MAIN)
        for package in (backends, profilers):
            folder = Path(str(package.__file__)).parent
            for source in sorted(folder.rglob("*.py")):
                name = str(Path(folder.name) / source.relative_to(folder))
                info = zipfile.ZipInfo(name, _EPOCH)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, source.read_bytes())
    data = buffer.getvalue()
    return Archive(data, hashlib.sha256(data).hexdigest())


def command(device: Device) -> list[str]:
    """What to run on a device: its Python, behind its prefix and the variables that start it."""
    needed = [f"{name}={value}" for name, value in device.interpreter.environment.items() if name in STARTS_PYTHON]
    return [
        *device.interpreter.prefix,
        *(["env", *needed] if needed else []),
        device.interpreter.python,
        "-c",
        LOADER,
        MARK.decode() + LOADED,
        str(len(_bootstrap(device))),
        MARK.decode() + CUT,
    ]


def _bootstrap(device: Device) -> bytes:
    """ASCII alone, which the loader reads byte by byte."""
    archive = agent_archive()
    meters = {external_meters.METERS_VARIABLE: " ".join(device.meters)} if device.meters else {}
    variables = {**meters, **_computes_on(device), **device.interpreter.environment}
    environment = {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
    sources = [Path(str(module.__file__)).read_text(encoding="ascii") for module in (guardian, bootstrap)]
    start = f"main({archive.digest!r}, {len(archive.data)}, {environment!r})"
    return "\n".join([*sources, "adopts = adopt()", f"guard({start}, adopts)\n"]).encode("ascii")


def _computes_on(device: Device) -> dict[str, str]:
    """Variables that choose what it computes on; GPUs that it leaves alone are hidden."""
    if device.computes_on is None:
        return {}
    return {DEVICE_VARIABLE: device.computes_on, **({"CUDA_VISIBLE_DEVICES": ""} if device.computes_on == CPU else {})}


def hand_over(process: Process, device: Device) -> None:
    """Talk to the loader and the bootstrap until the agent is there.

    Raises RemoteError with what is wrong on the device.
    """
    noise = ""
    while True:
        try:
            line = process.read_line()
        except EOFError:
            raise _not_started(process, device, noise) from None
        before, mark, said = line.rstrip(b"\r").partition(MARK)  # before it is what a login shell prints
        if not mark:
            noise = before.decode(errors="replace").strip() or noise
            continue
        word, _, rest = said.decode(errors="replace").partition(" ")
        if word == "have":
            return
        if word == LOADED:
            _send(process, _bootstrap(device))
        elif word == "need":
            _send(process, agent_archive().data)
        elif word == CUT and process.closed:  # what was said at once comes only now
            raise _waited(device)
        elif word in REFUSALS:
            raise _refused(device, word, rest)


def _send(process: Process, data: bytes) -> None:
    """Write to a program that may have ended: what it has said last tells why."""
    with suppress(DeviceLostError):
        process.write(data)


def _refused(device: Device, word: str, rest: str) -> RemoteError:
    """What the bootstrap says where it does not start the agent."""
    if word == "old":
        remedy = "set `python` in the fleet file to one of 3.6 or newer"
        return RemoteError(f"{device.name}: {device.interpreter.python} is Python {rest}; {remedy}")
    if word == CUT:
        remedy = "let it pass standard input on (`docker exec -i`, for example)"
        return RemoteError(f"{device.name}: {_starter(device)} cuts standard input, by which the agent comes; {remedy}")
    if word == "terminal":
        starter = _starter(device)
        return RemoteError(f"{device.name}: {starter} gives Python a terminal as its input; start it without one")
    if word == "unsafe":
        return RemoteError(
            f"{device.name}: {rest}, who could change what runs there; close it to others (chown, chmod go-w), "
            "or set XDG_CACHE_HOME in `environment` to a folder that is closed"
        )
    return RemoteError(f"{device.name}: cannot keep the agent in its cache: {rest}; {FREE_SPACE}")


def _starter(device: Device) -> str:
    """Who starts Python there, for messages."""
    prefix = shlex.join(device.interpreter.prefix)
    return f"`prefix` ({prefix})" if prefix else "the login shell"


def _not_started(process: Process, device: Device, noise: str) -> RemoteError:
    lines = process.errors().decode(errors="replace").strip().splitlines()
    reason = next((line for line in lines if _UNKNOWN in line), lines[-1]) if lines else noise
    if not reason:
        return _waited(device)
    python = device.interpreter.python
    return RemoteError(f"{device.name}: {python} does not start: {reason}; set `python` or `prefix` in the fleet file")


def _waited(device: Device) -> DeviceLostError:
    """Nothing is known of a Python there."""
    return DeviceLostError(
        f"{device.name}: {_starter(device)} ended before {device.interpreter.python} had started, or was ended after a "
        "minute; does it wait for input there, or keep back what passes it (`conda run` without --no-capture-output)?"
    )
