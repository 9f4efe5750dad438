"""SSH settings of a device come from the fleet file first, then from OpenSSH's configuration."""

import getpass
import hashlib
import os
import pwd
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from planner.errors import RemoteError
from planner.fleet.device import Device, device_at
from planner.remote.openssh import account_home, home, options_of
from planner.remote.ssh_texts import agent_socket, expand, files_of, path_of

#: Signs of a host's or user's name that the shell of a ProxyCommand would take for its own.
_OF_SHELLS = re.compile(r"[\s'\"`$\\;&<>|(){}]|^-")


class SshTarget(NamedTuple):
    """One host to log in to, and the jump hosts before it.

    alias: the host as the operator wrote it.
    known_hosts: the first file is where a new key is stored.
    certificates: of keys, beside those that lie beside the key files.
    agent: the socket of the SSH agent, if any.
    revoked_keys: a list of host keys, which only the ssh program reads.
    jumps: in the order in which they are passed; none has jumps of its own.
    """

    alias: str
    hostname: str
    port: int
    user: str
    key_files: tuple[Path, ...]
    known_hosts: tuple[Path, ...]
    certificates: tuple[Path, ...] = ()
    agent: Path | None = None
    identities_only: bool = False
    host_key_alias: str | None = None
    proxy_command: str | None = None
    revoked_keys: str | None = None
    jumps: tuple["SshTarget", ...] = ()

    @property
    def by_proxy(self) -> bool:
        """Whether a ProxyCommand leads there, with which ssh may do more than pass bytes."""
        return any(hop.proxy_command for hop in (*self.jumps, self))

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
    target, jump = target_from(device, options_of(device.ssh))
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
        return device_at(text.strip(), ssh_config)
    except ValueError as error:
        raise RemoteError(f"jump host: {error}") from error


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
    user = login.user or one("user") or _own_user(device)
    place = {"h": hostname, "n": login.host, "p": str(port), "r": user}
    told = login.jump or one("proxyjump")
    jump = expand(told, place) if told else None
    proxy = one("proxycommand") if jump is None else None
    here = socket.gethostname()
    tokens = {
        **place, "k": one("hostkeyalias") or login.host, "j": told or "", "d": str(home()), "i": str(os.getuid()),
        "l": here, "L": here.partition(".")[0], "u": pwd.getpwuid(os.getuid()).pw_name if account_home() else user,
        "C": hashlib.sha1(f"{here}{hostname}{port}{user}{told or ''}".encode(), usedforsecurity=False).hexdigest(),
    }  # fmt: skip
    known = [*options.get("userknownhostsfile", ()), *options.get("globalknownhostsfile", ())]
    try:
        target = SshTarget(
            alias=device.name,
            hostname=hostname,
            port=port,
            user=user,
            key_files=_paths(options.get("identityfile", ()), tokens) if login.key is None else (login.key,),
            known_hosts=_paths(map(_in_home, files_of(known)), tokens),
            certificates=_paths(options.get("certificatefile", ()), tokens),
            agent=agent_socket(options.get("identityagent", (None,))[0], tokens),
            identities_only=login.key is not None or one("identitiesonly") == "yes",
            host_key_alias=one("hostkeyalias"),
            proxy_command=_proxy_command(proxy, place) if proxy else None,
            revoked_keys=one("revokedhostkeys"),
        )
    except ValueError as error:
        raise RemoteError(f"{device.name}: ssh configuration: {error}") from error
    return target, jump


def _own_user(device: Device) -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # by Python 3.11 and 3.13
        raise RemoteError(f"{device.name}: user {os.getuid()} has no name here; write address = user@host") from None


def _paths(files: Iterable[str], tokens: Mapping[str, str]) -> tuple[Path, ...]:
    return tuple(path_of(file.strip('"'), tokens) for file in files if file != "none")


def _proxy_command(text: str, place: Mapping[str, str]) -> str:
    """A command for a shell. Raises ValueError for a name that the shell would not read as one."""
    for sign, value in place.items():
        if f"%{sign}" in text and _OF_SHELLS.search(value):
            raise ValueError(f"ProxyCommand passes {value!r} to a shell; correct the address")
    return expand(text, place).removeprefix("exec ")


def _in_home(file: str) -> str:
    """A file that ssh names in the .ssh of the account's home: that in the .ssh of $HOME."""
    theirs = f"{account_home()}/.ssh/"
    return f"~/.ssh/{file.removeprefix(theirs)}" if file.startswith(theirs) else file
