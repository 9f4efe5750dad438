"""The address of a socket is a path, or a host and a port."""

from typing import Tuple, Union


def parse_address(text: str) -> Union[str, Tuple[str, int]]:
    """A path for a Unix socket, or HOST:PORT. Raises ValueError for neither."""
    if "/" in text:
        return text
    host, colon, port = text.rpartition(":")
    if not host or not colon or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError("an address is HOST:PORT, or the path of a Unix socket with a slash in it")
    return host, int(port)
