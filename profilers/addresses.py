"""Addresses of this device."""

import fcntl
import socket
import struct
from typing import Optional

_SIOCGIFADDR = 0x8915
_DISCARD = 9  # any port would do


def interface_address(job: object, name: str) -> Optional[str]:
    """The IPv4 address of a network interface; None where it has none or does not exist."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("256s", name.encode()[:15])
        try:
            answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


def address_towards(job: object, target: str) -> str:
    """The address this device would send from towards ``target``, an address or a host name. Nothing is sent.

    Raises OSError where the name is not resolved or nothing leads there.
    """
    family, kind, _, _, address = socket.getaddrinfo(target, _DISCARD, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])
