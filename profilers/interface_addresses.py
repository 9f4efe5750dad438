"""All addresses of this device's network interfaces, of both families, as Linux lists them.

An interface has any number of them. The older question (SIOCGIFADDR) tells one IPv4 address only.
"""

import socket
import struct
from typing import Dict, Iterator, List, NamedTuple, Tuple

# rtnetlink(7)
_REQUEST_DUMP = 0x301
_ERROR, _DONE, _NEW_ADDRESS, _GET_ADDRESS = 2, 3, 20, 22
_IFA_ADDRESS, _IFA_LOCAL, _IFA_LABEL = 1, 2, 3
_SECONDARY, _UNUSABLE = 0x01, 0x08 | 0x40  # IPv6 addresses that are doubled, or not yet checked for it
_OF_LINK = 253
_HEADER = struct.Struct("=IHHII")
_ADDRESS = struct.Struct("=BBBBI")
_ATTRIBUTE = struct.Struct("=HH")
_LIMIT_S = 5.0


class InterfaceAddress(NamedTuple):
    """One address.

    is_secondary: also of an IPv6 address that is temporary.
    is_link_local: also of an IPv4 address that a device gave itself because nobody else did.
    label: the name that an IPv4 address has beside its interface's, such as eth0:1.
    """

    interface: str
    address: str
    is_secondary: bool
    is_link_local: bool
    label: str = ""


def interface_addresses() -> List[InterfaceAddress]:
    """In the system's order. Raises OSError where it does not tell."""
    message = _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.settimeout(_LIMIT_S)
        kernel.send(_HEADER.pack(_HEADER.size + len(message), _GET_ADDRESS, _REQUEST_DUMP, 1, 0) + message)
        return list(_answers(kernel))


def best(addresses: List[InterfaceAddress]) -> List[str]:
    """Those under which others reach an interface: IPv4 first, and primary before secondary.

    Last are IPv4 addresses of the link; IPv6 ones mean nothing without the name of an interface.
    """
    usable = [each for each in addresses if not (each.is_link_local and ":" in each.address)]
    return [each.address for each in sorted(usable, key=_rank)]


def _rank(each: InterfaceAddress) -> Tuple[bool, bool, bool]:
    return each.is_link_local, ":" in each.address, each.is_secondary


def _answers(kernel: socket.socket) -> Iterator[InterfaceAddress]:
    while True:
        data = kernel.recv(1 << 16)
        while data:
            size, kind, _, _, _ = _HEADER.unpack_from(data)
            if kind == _DONE:
                return
            if kind == _ERROR:
                raise OSError("the kernel does not list its addresses")
            if kind == _NEW_ADDRESS:
                for address in _address(data[_HEADER.size : size]):
                    yield address
            data = data[_aligned(size) :]


def _address(message: bytes) -> Iterator[InterfaceAddress]:
    family, _, flags, scope, index = _ADDRESS.unpack_from(message)
    attributes = _attributes(message[_ADDRESS.size :])
    packed = attributes.get(_IFA_LOCAL) or attributes.get(_IFA_ADDRESS)
    if family in (socket.AF_INET, socket.AF_INET6) and packed and not flags & _UNUSABLE:
        try:
            name = socket.if_indextoname(index)
        except OSError:  # it has gone
            return
        text = socket.inet_ntop(family, packed)
        of_link = text.startswith("169.254.") if family == socket.AF_INET else scope == _OF_LINK
        label = attributes.get(_IFA_LABEL, b"").rstrip(b"\0").decode(errors="replace")
        yield InterfaceAddress(name, text, bool(flags & _SECONDARY), of_link, label)


def _attributes(data: bytes) -> Dict[int, bytes]:
    found = {}
    while len(data) >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(data)
        found[kind] = data[_ATTRIBUTE.size : size]
        data = data[max(_ATTRIBUTE.size, _aligned(size)) :]
    return found


def _aligned(size: int) -> int:
    return (size + 3) & ~3
