"""Remotes run commands on devices over SSH, or on this machine."""

from planner.errors import LoginError, RemoteError
from planner.fleet.device import Device
from planner.remote.base import Remote


def connect(device: Device, timeout_s: float = 15.0) -> Remote:
    """Connect to a device, or to this machine. Raises HostKeyError, LoginError, RemoteError."""
    if device.ssh is None:
        from planner.remote.local import LocalRemote

        return LocalRemote(device.name)
    if device.ssh.program:
        from planner.remote.ssh_program import SshProgramRemote

        return SshProgramRemote(device, timeout_s)
    return _by_library(device, timeout_s)


def _by_library(device: Device, timeout_s: float) -> Remote:
    """Where ssh itself may know a key, a login or a way that paramiko does not, it is asked."""
    from planner.remote.known_hosts import UnknownHostKeyError
    from planner.remote.ssh import SshRemote  # paramiko is slow to import, and a local fleet needs none
    from planner.remote.ssh_config import resolve
    from planner.remote.ssh_program import logs_in

    target = resolve(device)
    try:
        return SshRemote(device.name, target, timeout_s)
    except RemoteError as error:
        asks = target.by_proxy or isinstance(error, (LoginError, UnknownHostKeyError))
        if not (asks and logs_in(device, timeout_s)):
            raise
        remedy = 'but ssh itself logs in there: set ssh = "program" in the fleet file'
        raise LoginError(f"{error}; {remedy}") from error
