"""How the agent gets onto a device: once, whole, and past whatever a login prints."""

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import paramiko
import pytest

from backends.agent import claims
from backends.protocol.orders import FindCache, ReadClock
from planner.agents import bundle
from planner.agents.client import AgentClient
from planner.errors import RemoteError
from planner.fleet.device import Device, Interpreter
from planner.remote.local import LocalRemote
from planner.remote.ssh import SshRemote
from planner.remote.ssh_config import SshTarget
from tests.sshserver import ssh_server


@contextmanager
def agent_on(device: Device) -> Iterator[AgentClient]:
    remote = LocalRemote(device.name)
    try:
        yield AgentClient.launch(device, remote)
    finally:
        remote.close()


def device(cache: Path, python: str = sys.executable, **environment: str) -> Device:
    return Device(
        name="tx2", interpreter=Interpreter(python, environment={"XDG_CACHE_HOME": str(cache), **environment})
    )


def script(path: Path, text: str) -> str:
    """An interpreter of our own making."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def kept(cache: Path) -> Path:
    (path,) = (cache / "planner").glob("agent-*")
    return path


def refusal(device: Device) -> str:
    with pytest.raises(RemoteError) as raised, agent_on(device):
        pass
    return str(raised.value)


def test_equal_sources_make_an_equal_archive() -> None:
    first = bundle.agent_archive()
    bundle.agent_archive.cache_clear()
    assert bundle.agent_archive() == first


def test_the_second_start_finds_what_the_first_has_left(tmp_path: Path) -> None:
    with agent_on(device(tmp_path)) as agent:
        assert agent.call(ReadClock()) > 0
    first = kept(tmp_path).stat()
    assert kept(tmp_path).stem == f"agent-{bundle.agent_archive().digest[:16]}"
    with agent_on(device(tmp_path)) as agent:
        assert agent.call(ReadClock()) > 0
    assert (kept(tmp_path).stat().st_ino, kept(tmp_path).stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)


@pytest.mark.parametrize(
    "left",
    [lambda data: data[:100], lambda data: b"raise SystemExit".ljust(len(data)), lambda data: data[:-1] + b"x"],
    ids=["by a power failure", "by somebody else", "by a bad card"],
)
def test_what_is_not_the_agent_is_replaced_before_it_starts(tmp_path: Path, left: Callable[[bytes], bytes]) -> None:
    with agent_on(device(tmp_path)):
        pass
    kept(tmp_path).write_bytes(left(bundle.agent_archive().data))
    with agent_on(device(tmp_path)):
        assert kept(tmp_path).read_bytes() == bundle.agent_archive().data


def test_other_users_of_a_device_cannot_read_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "planner").mkdir(0o755)
    with agent_on(device(tmp_path)) as agent:
        agent.store("model-1/net.py", b"x")
    kept_there = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "planner").rglob("*")}
    assert (tmp_path / "planner").stat().st_mode & 0o777 == 0o700
    assert kept_there and all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in kept_there.items())


@pytest.mark.parametrize(
    "noise",
    [
        "echo 'Welcome to tx2!'; echo; echo '{\"hello\": 1}'",
        "printf 'Last login: today '",
        "echo 'user@planner:~$'; echo 'Welcome to planner: have fun'",
    ],
)
def test_what_a_login_prints_does_not_matter(tmp_path: Path, noise: str) -> None:
    python = script(tmp_path / "python", f'{noise}\nexec "{sys.executable}" "$@"')
    with agent_on(device(tmp_path / "cache", python)) as agent:
        assert agent.call(ReadClock()) > 0


def test_what_is_about_to_start_is_claimed_before_it_is_said_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_claims = b"import sys; sys.stdin.read()"
    digest = hashlib.sha256(never_claims).hexdigest()
    monkeypatch.setattr(bundle, "agent_archive", lambda: bundle.Archive(never_claims, digest))
    folder = tmp_path / "planner"
    folder.mkdir()
    path = folder / f"agent-{digest[:16]}.pyz"
    path.write_bytes(never_claims)
    remote = LocalRemote("tx2")
    try:
        bundle.hand_over(remote.spawn(bundle.command(device(tmp_path))), device(tmp_path))
        assert claims.is_claimed(path.name, claims.claimed(str(folder)))
    finally:
        remote.close()
    assert claims.claimed(str(folder)) == set()


def test_an_agent_gives_up_the_claim_that_it_was_started_with(tmp_path: Path) -> None:
    folder = tmp_path / "planner"
    with agent_on(device(tmp_path)) as agent:
        assert kept(tmp_path).name in claims.claimed(str(folder))
        assert len(list(folder.glob("claims-*"))) == 1
        agent.call(FindCache())
        assert claims.claimed(str(folder)) == set() and not list(folder.glob("claims-*"))


def test_a_prefix_comes_first(tmp_path: Path) -> None:
    inside = script(tmp_path / "inside", 'export INSIDE="$1"; shift; exec "$@"')
    contained = Device(
        name="tx2",
        interpreter=Interpreter(
            sys.executable, prefix=(inside, "box"), environment={"XDG_CACHE_HOME": str(tmp_path / "cache")}
        ),
    )
    with agent_on(contained) as agent:
        assert b"INSIDE=box" in Path(f"/proc/{agent.pid}/environ").read_bytes()


def test_an_old_python_is_named_with_the_remedy(tmp_path: Path) -> None:
    pretend = "import sys; sys.version_info = (2, 7, 18); code = sys.argv[2]; sys.argv[1:3] = []; exec(code)"
    python = script(tmp_path / "python2", f"exec '{sys.executable}' -c '{pretend}' \"$@\"")
    told = refusal(device(tmp_path / "cache", python))
    assert "tx2" in told and "Python 2.7" in told and "`python` in the fleet file" in told


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "/no/such/python" in refusal(device(tmp_path, "/no/such/python"))


def test_a_python_without_numpy_is_named(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "numpy.py").write_text("raise ImportError(\"No module named 'numpy'\")\n")
    told = refusal(device(tmp_path / "cache", PYTHONPATH=str(hidden)))
    assert sys.executable in told and "numpy" in told


def test_a_cache_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = refusal(device(tmp_path / "file"))
    assert "tx2" in told and str(tmp_path / "file") in told and "XDG_CACHE_HOME" in told


def test_nothing_is_left_of_an_agent_that_found_no_room(tmp_path: Path) -> None:
    limited = script(tmp_path / "python", f"ulimit -f 8; exec '{sys.executable}' \"$@\"")
    assert "too large" in refusal(device(tmp_path / "cache", limited))
    assert list((tmp_path / "cache" / "planner").iterdir()) == []


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "zsh", "csh", "tcsh", "fish", "mksh"])
def test_any_login_shell_starts_the_agent(
    tmp_path: Path, shell: str, client_key: paramiko.PKey, target_of: Callable[..., SshTarget]
) -> None:
    program = shutil.which(shell) or pytest.skip(f"not installed: {shell}")
    with ssh_server(client_key, shell=program) as server:
        remote = SshRemote("tx2", target_of(server))
        agent = AgentClient.launch(device(tmp_path / "it's a cache!"), remote)
        assert agent.call(ReadClock()) > 0
        remote.close()


def behind(prefix: Sequence[str], cache: Path) -> Device:
    interpreter = Interpreter(sys.executable, tuple(prefix), {"XDG_CACHE_HOME": str(cache)})
    return Device(name="tx2", interpreter=interpreter)


@pytest.mark.parametrize(
    "cut",
    ['exec "$@" </dev/null', 'exec "$@" <&-', 'dd bs=1 count=2000 | "$@"', 'dd bs=1 count=20000 | "$@"'],
    ids=["nothing comes", "it is closed", "part of the bootstrap comes", "part of the agent comes"],
)
@pytest.mark.parametrize(
    "warns",
    ["", "echo 'Emulate Docker CLI using podman.' >&2", "trap 'echo Defaulted container >&2' EXIT"],
    ids=["silent", "warning", "last word"],
)
def test_a_prefix_that_cuts_standard_input_is_named(tmp_path: Path, cut: str, warns: str) -> None:
    box = script(tmp_path / "box", f"{warns}\n{cut.removeprefix('exec ') if 'trap' in warns else cut}")
    assert f"tx2: `prefix` ({box}) cuts standard input" in refusal(behind([box], tmp_path))


def test_a_prefix_that_gives_a_terminal_is_named(tmp_path: Path) -> None:
    in_terminal = [sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])"]
    told = refusal(behind(in_terminal, tmp_path))
    assert "tx2: `prefix`" in told and "terminal" in told


def test_a_prefix_that_keeps_back_what_python_says_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.agents.client.START_S", 0.5)
    box = script(tmp_path / "box", 'said=$("$@"); echo "$said"')
    assert f"`prefix` ({box}) ended before" in (told := refusal(behind([box], tmp_path))) and "conda run" in told


def test_a_prefix_that_starts_nothing_is_named(tmp_path: Path) -> None:
    assert "`prefix` (true) ended before" in refusal(behind(["true"], tmp_path))


def test_what_an_account_without_a_shell_says_is_passed_on(tmp_path: Path) -> None:
    said = "This account is currently not available."
    assert f"does not start: {said}" in refusal(behind([script(tmp_path / "nologin", f"echo {said}")], tmp_path))


def told(device: Device) -> bytes:
    """The environment of an agent on a device."""
    with agent_on(device) as agent:
        return Path(f"/proc/{agent.pid}/environ").read_bytes()


def test_a_device_is_told_of_its_meters_and_what_to_compute_on(tmp_path: Path) -> None:
    interpreter = Interpreter(sys.executable, environment={"XDG_CACHE_HOME": str(tmp_path)})
    metered = Device(name="a", meters=("shelly://plug", "csv:///log.csv"), computes_on="cpu", interpreter=interpreter)
    environment = told(metered).split(b"\0")
    assert b"PLANNER_METERS=shelly://plug csv:///log.csv" in environment
    assert {b"PLANNER_DEVICE=cpu", b"CUDA_VISIBLE_DEVICES="} <= set(environment)


def test_what_the_fleet_file_sets_reaches_the_agent_and_stands_in_no_command_line(tmp_path: Path) -> None:
    secret = "s3cr\u00e9t \"'\n$(id)"
    variables = {"TOKEN": secret, "PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    lines = tmp_path / "lines"
    watched = script(tmp_path / "python", f"tr '\\0' ' ' </proc/$$/cmdline >>{lines}\nexec '{sys.executable}' \"$@\"")
    environment = told(Device(name="a", interpreter=Interpreter(watched, ("env",), variables))).split(b"\0")
    assert f"TOKEN={secret}".encode() in environment and b"PATH=/usr/bin:/bin" in environment
    assert b"TOKEN" not in lines.read_bytes() and "TOKEN" not in " ".join(bundle.command(device(tmp_path, TOKEN="x")))


def test_a_cache_of_somebody_else_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "planner").mkdir()
    (tmp_path / "planner").chmod(0o777)
    refused = refusal(device(tmp_path))
    assert f"tx2: other users may write to {tmp_path / 'planner'}" in refused and "XDG_CACHE_HOME" in refused
    assert list((tmp_path / "planner").iterdir()) == []


def test_a_pipe_in_the_place_of_the_agent_holds_up_nobody(tmp_path: Path) -> None:
    with agent_on(device(tmp_path)):
        pass
    path = kept(tmp_path)
    path.unlink()
    os.mkfifo(path)
    with agent_on(device(tmp_path)):
        assert path.read_bytes() == bundle.agent_archive().data
