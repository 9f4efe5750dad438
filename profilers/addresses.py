"""This module tells the IP addresses of this device."""

import fcntl
import socket
import struct
from typing import Optional

_SIOCGIFADDR = 0x8915
_DISCARD_PORT = 9  # a connected datagram socket needs a port; nothing is sent to it


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
    """The address from which this device sends to ``target``, an address or a host name.

    Nothing is sent. Raises OSError where the name is not resolved or no route exists.
    """
    family, kind, _, _, address = socket.getaddrinfo(target, _DISCARD_PORT, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])
