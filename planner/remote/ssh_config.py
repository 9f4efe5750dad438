"""SSH settings of a device come from the fleet file first, then from OpenSSH's configuration.

OpenSSH takes the home of the account from the password database. Where $HOME names another folder,
its .ssh counts here: configuration, keys and known hosts alike. Files that such a configuration
includes by a relative path, or by ~, are still those of the account. A configuration in $HOME that
ssh would refuse for its owner or its rights is left out, as if $HOME were the account's.
"""

import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from planner.errors import RemoteError
from planner.fleet.device import Device, SshLogin, device_at, expand_home

_KEY_FILES = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_SYSTEM_CONFIG = "/etc/ssh/ssh_config"
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")
_SSH_TIMEOUT_S = 20.0  # a `Match exec` may use the network


class SshTarget(NamedTuple):
    """One host to log in to, and the jump hosts before it.

    alias: the host as the operator wrote it.
    known_hosts: the first file is where a new key is stored.
    jumps: in the order in which they are passed; none has jumps of its own.
    """

    alias: str
    hostname: str
    port: int
    user: str
    key_files: tuple[Path, ...]
    known_hosts: tuple[Path, ...]
    identities_only: bool = False
    host_key_alias: str | None = None
    proxy_command: str | None = None
    jumps: tuple["SshTarget", ...] = ()

    @property
    def known_name(self) -> str:
        """The name under which known_hosts files hold this host's key."""
        if self.host_key_alias:
            return self.host_key_alias.lower()
        name = self.hostname.lower()
        return name if self.port == 22 else f"[{name}]:{self.port}"


def resolve(device: Device, before: tuple[str, ...] = ()) -> SshTarget:
    """The SSH target of a device that is not local.

    With OpenSSH installed, ``ssh -G`` resolves Include, Match and ProxyJump; settings of the fleet
    file take precedence. Without OpenSSH, the fleet file and OpenSSH's default paths are used.
    before: names of the devices that this one is a jump host of.
    Raises RemoteError.
    """
    assert device.ssh is not None
    if device.name in before:
        circle = " → ".join((*before, device.name))
        raise RemoteError(f"jump hosts form a circle: {circle}; give the last `ProxyJump none` in ~/.ssh/config")
    options = parse_options(_ask_ssh(device.ssh)) if shutil.which("ssh") else _usual(device.ssh)
    target, jump = target_from(device, options)
    hops = [] if jump in (None, "none") else str(jump).split(",")
    jumps: list[SshTarget] = []
    for number, text in enumerate(hops):
        hop = resolve(_hop(text, device.ssh.ssh_config), (*before, device.name))
        # As ssh -J does: the first host has its own way, each other one goes through the one
        # before.
        jumps += [*(hop.jumps if number == 0 else ()), hop._replace(jumps=())]
    return target._replace(jumps=tuple(jumps))


def _hop(text: str, ssh_config: Path | None) -> Device:
    try:
        return device_at(text.strip().removeprefix("ssh://"), ssh_config)
    except ValueError as error:
        raise RemoteError(f"jump host: {error}") from error


def parse_options(text: str) -> dict[str, tuple[str, ...]]:
    """The output of ``ssh -G``: keyword in lower case -> its values, one a line."""
    options: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        keyword, _, value = line.strip().partition(" ")
        if keyword:
            options[keyword.lower()] = (*options.get(keyword.lower(), ()), value)
    return options


def target_from(device: Device, options: Mapping[str, Sequence[str]]) -> tuple[SshTarget, str | None]:
    """The target that options describe, fleet values first, and its ProxyJump if any.

    Raises RemoteError.
    """

    def one(keyword: str) -> str | None:
        value = options.get(keyword, ("none",))[0]
        return None if value == "none" else value

    login = device.ssh
    assert login is not None
    hostname = one("hostname") or login.host
    port = login.port or int(one("port") or 22)
    user = login.user or one("user") or getpass.getuser()
    home, own_user = str(Path.home()), getpass.getuser()
    tokens = {"h": hostname, "n": login.host, "p": str(port), "r": user, "u": own_user, "d": home, "%": "%"}
    files = options.get("identityfile", ()) if login.key is None else (str(login.key),)
    known = [*options.get("userknownhostsfile", ()), *options.get("globalknownhostsfile", ())]
    known_files = [_in_home(file) for file in " ".join(known).split()]
    jump = login.jump or one("proxyjump")
    proxy = one("proxycommand") if jump is None else None
    target = SshTarget(
        alias=device.name,
        hostname=hostname,
        port=port,
        user=user,
        key_files=_paths(device, files, tokens),
        known_hosts=_paths(device, known_files, tokens),
        identities_only=login.key is not None or one("identitiesonly") == "yes",
        host_key_alias=one("hostkeyalias"),
        proxy_command=expand(proxy, tokens).removeprefix("exec ") if proxy else None,
    )
    return target, jump


def _paths(device: Device, files: Iterable[str], tokens: Mapping[str, str]) -> tuple[Path, ...]:
    try:
        return tuple(expand_home(expand(file, tokens)) for file in files if file != "none")
    except ValueError as error:
        raise RemoteError(f"{device.name}: ssh configuration: {error}") from error


def expand(text: str, tokens: Mapping[str, str]) -> str:
    """Replace the %-tokens of ssh_config(5); unknown tokens stay as they are."""
    parts = iter(text.split("%"))
    expanded = next(parts)
    for part in parts:
        if part == "":  # "%%": the percent sign, then what follows it
            expanded += "%" + next(parts, "")
        else:
            expanded += tokens.get(part[0], f"%{part[0]}") + part[1:]
    return expanded


def _in_home(file: str) -> str:
    """A file that ssh names in the .ssh of the account's home: that in the .ssh of $HOME."""
    theirs = f"{_account_home()}/.ssh/"
    return f"~/.ssh/{file.removeprefix(theirs)}" if file.startswith(theirs) else file


def _account_home() -> str:
    """The home that OpenSSH knows of."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir.rstrip("/")
    except KeyError:  # in a container, say; ssh then says that there is no such user
        return str(Path.home())


def _ask_ssh(login: SshLogin) -> str:
    options = ["-p", str(login.port)] if login.port else []
    options += ["-l", login.user] if login.user else []
    options += ["-o", f"ProxyJump={login.jump}"] if login.jump else []
    try:
        with _configuration(login) as configuration:
            answer = subprocess.run(
                ["ssh", "-G", *configuration, *options, "--", login.host],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=_SSH_TIMEOUT_S, check=False, text=True,
            )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise RemoteError(f"`ssh -G {login.host}` took over {_SSH_TIMEOUT_S:g} s; see its Match exec") from error
    if answer.returncode != 0:
        reason = (answer.stderr.strip() or f"exit status {answer.returncode}").splitlines()[0]
        raise RemoteError(f"`ssh -G {login.host}` fails: {reason}; correct the ssh configuration")
    return answer.stdout


@contextmanager
def _configuration(login: SshLogin) -> Iterator[tuple[str, ...]]:
    """The option that names the configuration of ssh, where it is not that which ssh would take."""
    own = Path.home() / ".ssh/config"
    if login.ssh_config:
        yield ("-F", str(login.ssh_config))
    elif str(Path.home()) == _account_home() or not _would_be_read(own):
        yield ()
    else:
        with tempfile.NamedTemporaryFile("w", prefix="planner-ssh-", encoding="utf-8") as file:
            file.write(f'Include "{own}"\nInclude {_SYSTEM_CONFIG}\n')
            file.flush()
            yield ("-F", file.name)


def _would_be_read(config: Path) -> bool:
    """Whether ssh takes a configuration: nobody else can change it, or there is none."""
    try:
        found = config.stat()
    except OSError:
        return True
    return found.st_uid in (0, os.getuid()) and not found.st_mode & 0o022


def _usual(login: SshLogin) -> dict[str, tuple[str, ...]]:
    """Default options where OpenSSH is not installed."""
    if login.ssh_config is not None:
        raise RemoteError(f"reading {login.ssh_config} needs OpenSSH's ssh; install it, or remove ssh_config")
    return {"identityfile": _KEY_FILES, "userknownhostsfile": _KNOWN_HOSTS}
