"""A login passes jump hosts one by one, verifies their host keys and authenticates."""

import logging
import random
import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import NamedTuple

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from planner.errors import HostKeyError, LoginError, RemoteError
from planner.fleet.device import Device
from planner.remote.identities import identities
from planner.remote.known_hosts import (
    ChangedHostKeyError,
    HostKey,
    UnknownHostKeyError,
    known_keys,
    verify,
    without_port,
)
from planner.remote.ssh_config import SshTarget, resolve
from planner.remote.ssh_transport import GONE, open_link, place, proxy_words, quietly

_TRIES = 4
_FIRST_PAUSE_S = 0.25
_KEEPALIVE_S = 5
#: What paramiko offers, by its version, that OpenSSH leaves out. Every sshd from 7.2 on has better.
_WEAK = {
    "ciphers": ["aes128-cbc", "aes192-cbc", "aes256-cbc", "3des-cbc"],
    "macs": ["hmac-md5", "hmac-md5-96", "hmac-sha1-96"],
    "keys": ["ssh-rsa", "ssh-dss"],
    "pubkeys": ["ssh-rsa", "ssh-dss"],
    "kex": ["diffie-hellman-group1-sha1", "diffie-hellman-group14-sha1", "diffie-hellman-group-exchange-sha1"],
}
#: What paramiko says where neither the host nor who signs for a key has answered.
_SILENT = "Authentication timeout."

# Without a handler, paramiko's records and their tracebacks would end up on screen.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class _DroppedError(Exception):
    """The server dropped the connection before the login; a retry may succeed."""


class Login(NamedTuple):
    """Settings of a login: the device, the limit of each connect and handshake, the cleanup."""

    device: str
    timeout_s: float
    stack: ExitStack

    def pass_hosts(self, hops: Iterable[SshTarget]) -> paramiko.Transport | None:
        """Log in to each host through the one before; return the last transport.

        Raises HostKeyError, LoginError, RemoteError.
        """
        via: paramiko.Transport | None = None
        for hop in hops:
            if hop.revoked_keys is not None:
                raise HostKeyError(
                    f"{self.device}: only the ssh program reads RevokedHostKeys, which is set for {place(hop)}; "
                    'set ssh = "program" in the fleet file'
                )
            via = self.shake_hands(hop, via, authenticate=True)
        return via

    def shake_hands(
        self, hop: SshTarget, via: paramiko.Transport | None, authenticate: bool = False
    ) -> paramiko.Transport:
        """An encrypted connection.

        Where sshd drops it, as it does with many at once (MaxStartups), it is tried again.
        authenticate: verify the host's key and log in.
        """
        deadline_s = time.monotonic() + self.timeout_s
        for attempt in range(1, _TRIES + 1):
            with ExitStack() as opened:
                try:
                    transport = self._replace(stack=opened)._try(hop, via, authenticate)
                    self.stack.enter_context(opened.pop_all())
                    return transport
                except _DroppedError as error:
                    if attempt == _TRIES or time.monotonic() >= deadline_s:
                        tries = f"try {attempt} of {_TRIES}: {error}"
                        raise RemoteError(
                            f"{self.device}: {place(hop)} dropped the connection ({tries}); "
                            "is it an SSH server, and does its log say why (MaxStartups, fail2ban)?"
                        ) from error
            time.sleep(_FIRST_PAUSE_S * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))
        raise AssertionError("the last try returns or raises")

    def shown_key(self, hop: SshTarget, transport: paramiko.Transport) -> HostKey:
        """The host key that the handshake received.

        Raises HostKeyError where no known_hosts file can hold it.
        """
        if not hop.known_hosts:
            raise HostKeyError(
                f"{self.device}: no file holds host keys of {place(hop)}: UserKnownHostsFile and GlobalKnownHostsFile "
                "are both none; name a file in the ssh configuration"
            )
        key = transport.get_remote_server_key()
        return HostKey(self.device, hop.known_name, key.get_name(), key.get_base64(), hop.known_hosts)

    def _try(self, hop: SshTarget, via: paramiko.Transport | None, authenticate: bool) -> paramiko.Transport:
        link = None
        try:
            link = open_link(self.device, hop, via, self.timeout_s, self.stack)
            transport = paramiko.Transport(link, disabled_algorithms=_WEAK)
            self.stack.callback(quietly, transport.close)
            transport.banner_timeout = transport.auth_timeout = transport.channel_timeout = self.timeout_s
            _prefer_known_types(hop, transport)
            transport.start_client(timeout=self.timeout_s)
            transport.get_remote_server_key()
        except IncompatiblePeer as error:
            raise LoginError(
                f"{self.device}: {place(hop)} speaks no common algorithm ({error}); update its sshd"
            ) from error
        except GONE as error:
            raise _DroppedError((link and proxy_words(link)) or str(error) or type(error).__name__) from error
        if authenticate:
            verify(self.shown_key(hop, transport))
            _login(self.device, hop, transport)
            transport.set_keepalive(_KEEPALIVE_S)
        return transport


def fetch_host_key(device: Device, timeout_s: float = 15.0) -> HostKey:
    """The host key of a device, without logging in.

    Where a jump host's key is unknown or has changed, returns that key: store it and fetch again.
    Raises RemoteError.
    """
    if device.local:
        raise RemoteError(f"{device.name}: is this machine itself and has no host key to trust")
    target = resolve(device)
    with ExitStack() as stack:
        login = Login(device.name, timeout_s, stack)
        try:
            via = login.pass_hosts(target.jumps)
            return login.shown_key(target, login.shake_hands(target, via))
        except (UnknownHostKeyError, ChangedHostKeyError) as error:
            return error.host_key
        except RemoteError as error:
            if isinstance(error, HostKeyError) or not (isinstance(error, LoginError) or target.by_proxy):
                raise
            remedy = f"or log in once by ssh, which asks whether to store the key of {target.known_name}"
            raise LoginError(f"{error}; {remedy}") from error


def _prefer_known_types(hop: SshTarget, transport: paramiko.Transport) -> None:
    """Request a key type that is on record; else a host with several would seem changed."""
    names = (hop.known_name, without_port(hop.known_name))
    known = {key.type for name in names for key in known_keys(name, hop.known_hosts)}
    if "ssh-rsa" in known:  # the key's type; the signature's may not be SHA-1
        known |= {"rsa-sha2-512", "rsa-sha2-256"}
    options = transport.get_security_options()
    options.key_types = tuple(sorted(options.key_types, key=lambda name: name not in known))


def _login(device: str, hop: SshTarget, transport: paramiko.Transport) -> None:
    refused: list[str] = []
    with identities(hop) as (keys, unusable):
        for label, key in keys:
            try:
                more = transport.auth_publickey(hop.user, key)
            except paramiko.AuthenticationException as error:
                if str(error) == _SILENT:
                    raise LoginError(
                        f"{device}: nothing was heard of the login by {label} within {transport.auth_timeout:g} s; "
                        "if the SSH agent waits for you there (a touch, a passphrase), answer it in time"
                    ) from error
                if transport.is_active():
                    refused.append(label)
                    continue
                if not refused:
                    raise _DroppedError(str(error)) from error
                refused.append(f"{label}, when the host hung up: name the right key in the fleet file")
                break
            except GONE as error:
                raise _DroppedError(str(error) or type(error).__name__) from error
            if not more:
                return
            refused.append(f"{label}, accepted, but the host asks for {', '.join(more)} too")
    tried = "; ".join([f"tried {', '.join(refused)}" if refused else "no key to try", *unusable])
    raise LoginError(
        f"{device}: {hop.user}@{place(hop)} refuses the login ({tried}); "
        f"put a key there with `ssh-copy-id -p {hop.port} {hop.user}@{hop.hostname}`"
    )
