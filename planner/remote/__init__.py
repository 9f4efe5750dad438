"""Remotes run commands on devices over SSH, or on this machine."""

from planner.errors import LoginError
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
    from planner.remote.known_hosts import UncertifiedHostError
    from planner.remote.ssh import SshRemote  # paramiko is slow to import, and a local fleet needs none
    from planner.remote.ssh_config import resolve
    from planner.remote.ssh_program import logs_in

    try:
        return SshRemote(device.name, resolve(device), timeout_s)
    except (LoginError, UncertifiedHostError) as error:
        if not logs_in(device, timeout_s):
            raise
        remedy = 'but ssh itself logs in there: set ssh = "program" in the fleet file'
        raise LoginError(f"{error}; {remedy}") from error
