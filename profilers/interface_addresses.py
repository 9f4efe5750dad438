"""All addresses of this device's network interfaces, of both families.

An interface has any number of them. Linux lists them itself, where the older question (SIOCGIFADDR)
tells one IPv4 address only; elsewhere ``ifconfig`` does.
"""

import array
import fcntl
import platform
import socket
import struct
from typing import Iterator, List, NamedTuple, Tuple

from profilers import commands, ifconfig

# netdevice(7)
_SIOCGIFCONF = 0x8912
_LIST_BYTES = 1 << 16
#: A label of 16 bytes and a socket address of IPv4, in a union of 24 bytes, or 16 on 32 bits.
_ENTRY = struct.Struct("16s4x4s%dx" % (struct.calcsize("2LH6B") - 8))
# if_inet6 of proc(5), and linux/if_addr.h
_IPV6 = "/proc/net/if_inet6"
_OF_LINK = 0x20
_TEMPORARY = 0x01 | 0x20  # the latter: its network has given up an address
_UNUSABLE = 0x08 | 0x40  # addresses that are doubled, or not yet checked for it
# The same in words of ifconfig(8)
_TEMPORARY_WORDS = frozenset(("temporary", "deprecated"))
_UNUSABLE_WORDS = frozenset(("duplicated", "tentative", "detached"))


class InterfaceAddress(NamedTuple):
    """One address.

    is_temporary: of an IPv6 address that the system replaces from time to time, or has replaced.
    is_link_local: also of an IPv4 address that a device gave itself because nobody else did.
    label: the name that an IPv4 address has beside its interface's, such as eth0:1.
    """

    interface: str
    address: str
    is_temporary: bool
    is_link_local: bool
    label: str = ""


def interface_addresses() -> List[InterfaceAddress]:
    """Those of an interface with primary ones first. Raises OSError where the system tells none."""
    return [*_ipv4(), *_ipv6()] if platform.system() == "Linux" else list(_of_ifconfig())


def best(addresses: List[InterfaceAddress]) -> List[str]:
    """Those under which others reach an interface: IPv4 first, and primary before secondary.

    Last are IPv4 addresses of the link; IPv6 ones mean nothing without the name of an interface.
    """
    usable = [each for each in addresses if not (each.is_link_local and ":" in each.address)]
    return [each.address for each in sorted(usable, key=_rank)]


def _rank(each: InterfaceAddress) -> Tuple[bool, bool, bool]:
    return each.is_link_local, ":" in each.address, each.is_temporary


def _of_ifconfig() -> Iterator[InterfaceAddress]:
    for interface, address, words in ifconfig.parse(commands.output(["ifconfig", "-a"])):
        if not words & _UNUSABLE_WORDS:
            is_of_link = address.startswith(("169.254.", "fe80:"))
            yield InterfaceAddress(interface, address, bool(words & _TEMPORARY_WORDS), is_of_link)


def _ipv4() -> Iterator[InterfaceAddress]:
    found = array.array("B", bytes(_LIST_BYTES))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as kernel:
        told = fcntl.ioctl(kernel.fileno(), _SIOCGIFCONF, struct.pack("iP", _LIST_BYTES, found.buffer_info()[0]))
    used_bytes = struct.unpack("iP", told)[0]
    for name, packed in _ENTRY.iter_unpack(found.tobytes()[:used_bytes]):
        label, text = name.partition(b"\0")[0].decode(errors="replace"), socket.inet_ntoa(packed)
        yield InterfaceAddress(label.partition(":")[0], text, False, text.startswith("169.254."), label)


def _ipv6() -> Iterator[InterfaceAddress]:
    try:
        with open(_IPV6) as stream:
            lines = stream.read().splitlines()
    except FileNotFoundError:  # IPv6 is switched off
        return
    for digits, _, _, scope, flags, name in map(str.split, lines):
        if not int(flags, 16) & _UNUSABLE:
            text = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))
            yield InterfaceAddress(name, text, bool(int(flags, 16) & _TEMPORARY), int(scope, 16) == _OF_LINK)
