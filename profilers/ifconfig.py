"""ifconfig(8) of macOS and FreeBSD lists the addresses of interfaces."""

import re
from typing import FrozenSet, Iterator, NamedTuple

_INTERFACE = re.compile(r"([^\s:]+): flags=")
_ADDRESS = re.compile(r"\s+inet6? ([\da-fA-F.:]+)(?:%\S+)?(.*)")


class ListedAddress(NamedTuple):
    """An address of an interface, and the words behind it, such as ``temporary``."""

    interface: str
    address: str
    words: FrozenSet[str]


def parse(text: str) -> Iterator[ListedAddress]:
    """All addresses of ``ifconfig -a``, of both families, without the zones of those of a link."""
    interface = ""
    for line in text.splitlines():
        begun, found = _INTERFACE.match(line), _ADDRESS.match(line)
        if begun:
            interface = begun.group(1)
        elif found:
            yield ListedAddress(interface, found.group(1), frozenset(found.group(2).split()))
