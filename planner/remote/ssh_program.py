"""The ssh program as a remote: hardware keys, certificates of hosts and existing masters work."""

import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from planner.errors import DeviceLostError, HostKeyError, LoginError, RemoteError
from planner.fleet.device import Device, SshLogin
from planner.remote.local import LocalProcess, LocalRemote
from planner.remote.openssh import account_home, configuration, home, login_words, options_of
from planner.remote.quoting import command_line
from planner.remote.ssh_config import resolve

#: How ssh ends where the connection, and not the command, has failed.
_FAILED = 255
_EXIT_S = 5.0
#: It asks nothing, checks host keys, and opens nothing but the command's streams.
_OPTIONS = (
    "BatchMode=yes", "StrictHostKeyChecking=yes", "ServerAliveInterval=5", "ServerAliveCountMax=3",
    "ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "RemoteCommand=none", "RequestTTY=no",
    "PermitLocalCommand=no", "ControlMaster=no", "LogLevel=INFO",
)  # fmt: skip
#: The same, by OpenSSH 8.7 and newer.
_NEW_OPTIONS = ("SessionType=default", "StdinNull=no", "ForkAfterAuthentication=no")
#: What it says of a cause, and what of its own end after what was before has ended.
_CAUSES = {"ost key verification failed": HostKeyError, "Permission denied": LoginError}
_CONSEQUENCES = ("UNKNOWN port 65535", "kex_exchange_identification:", "banner exchange:", "stdio forwarding failed")


class SshProgramRemote(LocalRemote):
    """Runs each command by an ssh of its own. ``timeout_s`` bounds each connect."""

    def __init__(self, device: Device, timeout_s: float = 15.0) -> None:
        super().__init__(device.name)
        if shutil.which("ssh") is None:
            raise RemoteError(f'{device.name}: ssh = "program" needs OpenSSH\'s ssh on this machine; install it')
        self._stack = ExitStack()
        self._ssh = _words(device, self._stack, timeout_s)

    def spawn(self, command: Sequence[str]) -> "SshProgramProcess":
        return self._keep(SshProgramProcess(self.name, [*self._ssh, command_line(command)]))

    def close(self) -> None:
        super().close()
        self._stack.close()


class SshProgramProcess(LocalProcess):
    """A command on a device, and the ssh that carries its streams."""

    def read(self, size: int) -> bytes:
        """See Process. Raises RemoteError where ssh does not log in, DeviceLostError later."""
        data = super().read(size)
        if not data and not self.closed:
            with suppress(subprocess.TimeoutExpired):
                if self._popen.wait(_EXIT_S) == _FAILED:
                    raise self._failure()
        return data

    def _failure(self) -> RemoteError:
        lines = self.errors().decode(errors="replace").strip().splitlines() or ["it says nothing"]
        causes = [line for line in lines if not any(words in line for words in _CONSEQUENCES)]
        known = ((line, kind) for words, kind in _CAUSES.items() for line in lines if words in line)
        line, kind = next(known, ((causes or lines)[-1], RemoteError))
        said = f"{self._name}: ssh: {line.strip()}"
        if self.heard_s:
            return DeviceLostError(f"{said}; check its power and its network, then run again")
        if kind is HostKeyError:
            return HostKeyError(f"{said}; check the host's key and run `planner trust {self._name}`")
        return kind(f"{said}; see what `ssh -o BatchMode=yes` says of this host")


def logs_in(device: Device, timeout_s: float = 15.0) -> bool:
    """Whether the ssh program logs in without asking anything."""
    if shutil.which("ssh") is None:
        return False
    with ExitStack() as stack, suppress(subprocess.TimeoutExpired):
        command = [*_words(device, stack, timeout_s), "true"]
        asked = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=2 * timeout_s, check=False
        )
        return asked.returncode == 0
    return False


def _words(device: Device, stack: ExitStack, timeout_s: float) -> list[str]:
    """ssh with its options and the host. ``stack`` removes its configuration."""
    login = device.ssh
    assert login is not None
    options = [
        *_OPTIONS,
        *_new_options(login),
        f"ConnectTimeout={timeout_s:g}",
        *(["IdentitiesOnly=yes"] if login.key else []),
    ]
    keys = [login.key] if login.key else []
    if str(home()) != account_home():  # ssh looks for its usual files in that of the account
        target = resolve(device)
        keys = [path for path in target.key_files if path.exists()]
        known = " ".join(map(_quoted, target.known_hosts))
        options += [f"UserKnownHostsFile={known}"] if known else []
    options += [f"IdentityFile={_quoted(key)}" for key in keys]
    words = [word for option in options for word in ("-o", option)]
    file = stack.enter_context(configuration(login))
    return ["ssh", *file, *words, *login_words(login), "--", login.host]


def _new_options(login: SshLogin) -> tuple[str, ...]:
    with suppress(RemoteError):  # ssh itself will say why
        if "sessiontype" in options_of(login):
            return _NEW_OPTIONS
    return ()


def _quoted(path: Path) -> str:
    """A path in which ssh finds no space and no token."""
    return '"' + str(path).replace("%", "%%") + '"'
