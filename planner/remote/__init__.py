"""Remotes run commands on devices over SSH, or on this machine."""

from planner.fleet.device import Device
from planner.remote.base import Remote


def connect(device: Device, timeout_s: float = 15.0) -> Remote:
    """Connect to a device, or to this machine. Raises HostKeyError, LoginError, RemoteError."""
    if device.local:
        from planner.remote.local import LocalRemote

        return LocalRemote(device.name)
    from planner.remote.ssh import SshRemote  # paramiko is slow to import, and a local fleet needs none
    from planner.remote.ssh_config import resolve

    return SshRemote(device.name, resolve(device), timeout_s)
