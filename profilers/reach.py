"""Whether devices reach each other's ports at all: one listens, the others knock."""

import binascii
import contextlib
import os
import socket
from typing import Any, NamedTuple, Optional

#: An address that drops packets is told from one that is slow by this.
KNOCK_S = 4.0
_POLL_S = 0.1
_TOKEN_BYTES = 16


class Listening(NamedTuple):
    """A device can be reached at a port.

    token: what it greets with, by which it is told from strangers.
    """

    port: int
    token: str = ""


def listen(job: Any, address: str) -> None:
    """Greet whoever connects to a port of that address until told to stop. Event: Listening.

    Raises OSError where the address is none of this device's.
    """
    token = binascii.hexlify(os.urandom(_TOKEN_BYTES))
    with _listener(address) as listener:
        listener.settimeout(_POLL_S)
        job.emit(Listening(listener.getsockname()[1], token.decode()))
        while not job.stopping.is_set():
            try:
                guest = listener.accept()[0]
            except socket.timeout:
                continue
            with guest:
                _greet(guest, token)


def knock(job: Any, address: str, port: int, token: str) -> Optional[str]:
    """Connect to a listening device.

    None if it greets with its token, else why it is not reached.
    """
    try:
        with socket.create_connection((address, port), KNOCK_S) as link, link.makefile("rb") as stream:
            greeting = stream.read(2 * _TOKEN_BYTES)
    except socket.timeout:
        return "no answer from %s:%d within %g s" % (address, port, KNOCK_S)
    except OSError as error:
        return "%s:%d: %s" % (address, port, error.strerror or error)
    return None if greeting == token.encode() else "%s:%d is another machine" % (address, port)


def _listener(address: str) -> socket.socket:
    try:
        family, kind, _, _, where = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        try:
            listener.bind(where)
            listener.listen(64)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        remedy = "set data_address in the fleet file to an address of this device"
        raise OSError("cannot listen on %s (%s); %s" % (address, error.strerror or error, remedy)) from error
    return listener


def _greet(guest: socket.socket, token: bytes) -> None:
    with contextlib.suppress(OSError):  # it has gone again
        guest.sendall(token)
