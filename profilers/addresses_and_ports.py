"""A device finds its IP addresses, and tests whether it reaches ports of other devices."""

import contextlib
import os
import random
import socket
from typing import Any, NamedTuple, Optional

from profilers.interface_addresses import best, interface_addresses

#: An address that drops packets is told from one that is slow by this.
PROBE_LIMIT_S = 4.0
_POLL_S = 0.1
_DISCARD_PORT = 9  # a connected datagram socket needs a port; nothing is sent to it
_TOKEN_BYTES = 16
#: Below the ports that Linux gives to connections (net.ipv4.ip_local_port_range).
_LISTENING_PORTS = range(20000, 32768)


class Listening(NamedTuple):
    """A device can be reached at a port, where it greets with the token."""

    port: int
    token: str = ""


def interface_address(job: object, interface: str) -> Optional[str]:
    """The address under which others reach an interface; None where it has none or is not there.

    interface: one of its names; a label, which some of its addresses have; or an address of it,
    instead of which another is taken only where that one means nothing beyond its link.
    """
    listed = interface_addresses()
    labelled = [each for each in listed if each.label == interface != each.interface or each.address == interface]
    names = {each.interface for each in listed if each.address == interface} or {_usual_name(interface)}
    found = best(labelled) or best([each for each in listed if each.interface in names])
    return found[0] if found else None


def _usual_name(interface: str) -> str:
    """The name by which an interface is listed, where it has several (altname of `ip link`)."""
    if ":" in interface:  # of a label that no address has, the system would read the first part
        return interface
    try:
        return socket.if_indextoname(socket.if_nametoindex(interface))
    except OSError:
        return interface


def interface_with(address: str) -> str:
    """The network interface of this device that has an address, be it one of several.

    Raises ValueError where none has it: the device is then reached under another one's.
    """
    try:
        told = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ValueError("%s: %s; set data_address in the fleet file" % (address, error.strerror or error)) from error
    numeric = {str(where[0]).partition("%")[0] for _, _, _, _, where in told}
    listed = interface_addresses()
    for each in listed:
        if each.address in numeric:
            return each.interface
    names = ", ".join(dict.fromkeys(each.interface for each in listed))
    remedy = "set data_address or data_interface in the fleet file"
    raise ValueError("%s is the address of no interface here (%s); %s" % (address, names, remedy))


def address_towards(job: object, target: str) -> str:
    """The address from which this device sends to a host; nothing is sent. Raises OSError."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(target, _DISCARD_PORT, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError as error:
        lacks = "no address is known here of" if isinstance(error, socket.gaierror) else "no way leads from here to"
        what = "%s %s, another device's data_address or host (%s)" % (lacks, target, error.strerror)
        raise OSError("%s; correct it in the fleet file" % what) from error


def free_port() -> int:
    """A TCP port on which nobody listens at any address. Raises OSError where there is none.

    It is not among those that the system gives to connections, one of which might take it before
    the program that is to listen there.
    """
    for port in random.sample(_LISTENING_PORTS, len(_LISTENING_PORTS)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port
    raise OSError("no TCP port from %d to %d is free" % (_LISTENING_PORTS[0], _LISTENING_PORTS[-1]))


def await_connections(job: Any, address: str) -> None:
    """Greet whoever connects to a port of that address until told to stop. Event: Listening.

    Raises OSError where the address is none of this device's.
    """
    token = os.urandom(_TOKEN_BYTES).hex()
    with listen(address) as listener:
        listener.settimeout(_POLL_S)
        job.emit(Listening(listener.getsockname()[1], token))
        while not job.stopping.is_set():
            try:
                guest = listener.accept()[0]
            except socket.timeout:
                continue
            with guest:
                _greet(guest, token.encode())


def probe_port(job: Any, address: str, port: int, token: str) -> Optional[str]:
    """Connect to a listening device: None if it greets with its token, else why not."""
    try:
        with socket.create_connection((address, port), PROBE_LIMIT_S) as link, link.makefile("rb") as stream:
            greeting = stream.read(2 * _TOKEN_BYTES)
    except socket.timeout:
        return "no answer from %s:%d within %g s" % (address, port, PROBE_LIMIT_S)
    except OSError as error:
        return "%s:%d: %s" % (address, port, error.strerror or error)
    return None if greeting == token.encode() else "%s:%d is another machine" % (address, port)


def listen(address: str, port: int = 0) -> socket.socket:
    """A listening socket on one address of this device; port 0 lets the system choose.

    Raises OSError that names the address and the remedy.
    """
    try:
        family, kind, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
