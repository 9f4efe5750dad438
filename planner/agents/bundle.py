"""The agent is packed into one file, named by its hash, and copied to devices that lack it."""

import errno
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
from planner.errors import DeviceLostError, RemoteError
from planner.fleet.device import Device
from planner.remote.base import Process
from profilers.sensors import external_meters

MARK = b"planner:"
LOADED = "load"
#: What helps where a device cannot keep a file.
FREE_SPACE = "free some space there, or set XDG_CACHE_HOME in `environment`"
#: How fish begins; the lines that follow show where in the command it is.
_UNKNOWN = "Unknown command"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # equal sources make equal bytes
_MAIN = "import sys\n\nfrom backends.agent.main import main\n\nmain(*sys.argv[1:])\n"

#: The first command, which a device's login shell reads: short, one line, without quotes. It says
#: that Python runs, and takes the bootstrap from standard input. Until then nothing is sent there,
#: so that no start-up file of a shell swallows it.
LOADER = (
    "import os;from sys import argv;os.write(1,(argv[1]+os.linesep).encode());"
    "exec(str().join(os.read(0,1).decode()for _ in range(int(argv[2]))))"
)

#: Runs under any Python. Reads raw bytes only, so that nothing meant for the agent is swallowed.
#: Only an archive with the right content is started, from a folder that is closed to other users.
#: It claims the archive as backends.agent.claims does, before it says that this is there, and hands
#: the claim over to the agent, so that `planner clean` never removes what is about to start.
BOOTSTRAP = r"""
import hashlib, os, sys
def say(text): os.write(1, ("planner" + ":" + text + "\n").encode())  # a terminal shows this text as well
def read(size):
    data = b""
    while len(data) < size:
        part = os.read(0, min(size - len(data), 1 << 20))
        if not part:
            say("cut")
            sys.exit(1)
        data += part
    return data
def whole():
    if not os.path.exists(path): return False
    with open(path, "rb") as file: return hashlib.sha256(file.read()).hexdigest() == digest
def fetch():
    part = path + "." + str(os.getpid())
    with open(part, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        try:
            say("need")
            file.write(read(size_bytes))
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(part, path)
        finally:
            if os.path.exists(part): os.unlink(part)
def claim():
    import fcntl, tempfile
    try:
        descriptor, hidden = tempfile.mkstemp(prefix=".claims-", dir=folder)
        shown = os.path.join(folder, os.path.basename(hidden)[1:])
        try: fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError: pass
        os.write(descriptor, os.path.basename(path).encode() + b"\n")
        os.rename(hidden, shown)
        os.set_inheritable(descriptor, True)
        return [str(descriptor), shown]
    except OSError:
        return []
if sys.version_info < (3, 6):
    say("old %d.%d" % sys.version_info[:2])
    sys.exit(1)
if os.isatty(0):
    say("terminal")
    sys.exit(1)
try:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(cache, "planner")
    path = os.path.join(folder, "agent-" + digest[:16] + ".pyz")
    os.makedirs(folder, 0o700, exist_ok=True)
    try: os.chmod(folder, 0o700)
    except OSError: pass
    if not whole(): fetch()
    claimed = claim()
    if not whole(): fetch()
    say("have")
except OSError as error:
    say("fail " + str(error))
    sys.exit(1)
os.execv(sys.executable, [sys.executable, path] + claimed)
"""


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
    """What to run on a device: its Python, behind its prefix and its variables."""
    meters = {external_meters.METERS_VARIABLE: " ".join(device.meters)} if device.meters else {}
    environment = {**meters, **device.interpreter.environment}
    variables = ["env", *(f"{name}={value}" for name, value in environment.items())] if environment else []
    return [
        *device.interpreter.prefix,
        *variables,
        device.interpreter.python,
        "-c",
        LOADER,
        MARK.decode() + LOADED,
        str(len(_bootstrap())),
    ]


def _bootstrap() -> bytes:
    """ASCII alone, which the loader reads byte by byte."""
    archive = agent_archive()
    return f"digest, size_bytes = {archive.digest!r}, {len(archive.data)}\n{BOOTSTRAP}".encode("ascii")


def hand_over(process: Process, device: Device) -> None:
    """Talk to the loader and the bootstrap until the agent is there.

    Raises RemoteError with what is wrong on the device.
    """
    loaded, noise = False, ""
    while True:
        try:
            line = process.read_line()
        except EOFError:
            raise _not_started(process, device, loaded, noise) from None
        before, mark, said = line.rstrip(b"\r").partition(MARK)  # before it is what a login shell prints
        if not mark:
            noise = before.decode(errors="replace").strip() or noise
            continue
        word, _, rest = said.decode(errors="replace").partition(" ")
        if word == "have":
            return
        if word == LOADED:
            loaded = True
            _send(process, _bootstrap())
        elif word == "need":
            _send(process, agent_archive().data)
        else:
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
    if word == "cut":
        return _cut(device)
    if word == "terminal":
        starter = _starter(device)
        return RemoteError(f"{device.name}: {starter} gives Python a terminal as its input; start it without one")
    return RemoteError(f"{device.name}: cannot keep the agent in its cache: {rest}; {FREE_SPACE}")


def _cut(device: Device) -> RemoteError:
    return RemoteError(
        f"{device.name}: {_starter(device)} cuts standard input, through which the agent comes; "
        "let it pass standard input on (`docker exec -i`, for example)"
    )


def _starter(device: Device) -> str:
    """Who starts Python there, for messages."""
    prefix = shlex.join(device.interpreter.prefix)
    return f"`prefix` ({prefix})" if prefix else "the login shell"


def _not_started(process: Process, device: Device, loaded: bool, noise: str) -> RemoteError:
    python = device.interpreter.python
    lines = process.errors().decode(errors="replace").strip().splitlines()
    if loaded and (not lines or lines[-1].endswith(os.strerror(errno.EBADF))):
        return _cut(device)
    reason = next((line for line in lines if _UNKNOWN in line), lines[-1]) if lines else noise
    if not reason:
        return DeviceLostError(
            f"{device.name}: {_starter(device)} ended before {python} had started, or was ended after a minute; "
            "does it wait for input there?"
        )
    return RemoteError(f"{device.name}: {python} does not start: {reason}; set `python` or `prefix` in the fleet file")
