"""Members of a run exchange frames over mutually authenticated TLS.

A frame is a fixed header, its head as a small JSON list (``backends.protocol.frames``), and a
payload of raw bytes, which goes from and into the caller's own buffers. Lengths are bounded before
anything is allocated, and nothing is ever unpickled.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import socket
import ssl
import struct
import tempfile
import termios
from typing import Any, Callable, Optional, Sequence, Tuple, Type, TypeVar

from backends.protocol.json_messages import decode, encode_list
from backends.protocol.member_specs import Identity
from profilers import addresses_and_ports

_HEADER = struct.Struct("!4sIQ")
_MAGIC = b"plnr"
#: Where Linux has the milliseconds since the last acknowledgement, in ``struct tcp_info``.
_LAST_ACK_BYTE = 56
_HEAD_LIMIT = 1 << 20
_WRITE_BYTES = 1 << 20
#: A reader of a long payload is woken for so much of it and not for every packet, which saves both
#: ends most of their processor time and whatever else computes there most of its disturbance. Old
#: kernels would wait for ever for more than fits their first window.
_WAKE_BYTES = 1 << 15
_RECORD_BYTES = 1 << 15  # more than a TLS record, which the library may have taken from the socket in part
#: The server's name in its certificate; no device can be called so.
SERVER = "parameter server"
#: A listening socket on one address of this device.
listen = addresses_and_ports.listen


Head = TypeVar("Head")


class WireError(OSError):
    """The peer is gone, is not who it should be, or does not speak this protocol."""


def context(identity: Identity, server_side: bool) -> ssl.SSLContext:
    """A TLS context that admits only members of this run.

    Host names play no part: names are in certificates.
    """
    result = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server_side else ssl.PROTOCOL_TLS_CLIENT)
    if hasattr(ssl, "TLSVersion"):
        result.minimum_version = ssl.TLSVersion.TLSv1_2  # novermin
    else:  # Python 3.6
        result.options |= ssl.OP_NO_TLSv1 | ssl.OP_NO_TLSv1_1
    result.check_hostname = False
    result.verify_mode = ssl.CERT_REQUIRED
    result.load_verify_locations(cadata=identity.authority)
    handle, path = tempfile.mkstemp(prefix="planner-")  # readable by this user only; ssl loads keys from files alone
    try:
        with os.fdopen(handle, "w") as chain:
            chain.write(identity.key + identity.certificate)
        result.load_cert_chain(path)
    finally:
        os.unlink(path)
    return result


class Connection:
    """One TLS connection. One thread may use it at a time; ``abort`` may come from any thread."""

    def __init__(self, sock: ssl.SSLSocket, timeout_s: Optional[float]) -> None:
        self._sock = sock
        self._sock.settimeout(timeout_s)
        self.peer = _common_name(sock)
        self.sent_bytes = 0
        self.received_bytes = 0
        self.aborted = False
        self._wakes_at = 1

    def send(self, head: Any, payload: Sequence[memoryview] = ()) -> None:
        """Send one frame; the byte views of ``payload`` go one after the other, uncopied.

        Raises WireError.
        """
        text = json.dumps(encode_list(head)).encode()
        size = sum(view.nbytes for view in payload)
        try:
            self._sock.sendall(_HEADER.pack(_MAGIC, len(text), size) + text)
            for view in payload:
                # A timeout covers one write: bounded writes make it a limit on silence, not on
                # size.
                for start in range(0, len(view), _WRITE_BYTES):
                    self._sock.sendall(view[start : start + _WRITE_BYTES])
        except (OSError, ValueError) as error:
            raise _lost(self.peer, error) from error
        self.sent_bytes += _HEADER.size + len(text) + size

    def receive(self, *kinds: Type[Head], payload: Optional[Callable[[Head], Sequence[memoryview]]] = None) -> Head:
        """Receive one frame of these kinds; return its head.

        The payload fills the buffers that ``payload(head)`` gives, in order.
        Raises WireError.
        """
        header = bytearray(_HEADER.size)
        self._fill(memoryview(header))
        magic, head_bytes, payload_bytes = _HEADER.unpack(header)
        if magic != _MAGIC or head_bytes > _HEAD_LIMIT:
            raise WireError("%s does not speak this protocol" % self.peer)
        text = bytearray(head_bytes)
        self._fill(memoryview(text))
        try:
            head: Head = decode(json.loads(text.decode()), kinds)
            views = payload(head) if payload is not None else ()
        except WireError:
            raise
        except (ValueError, RecursionError, MemoryError) as error:
            reason = str(error) or type(error).__name__
            raise WireError("%s sent a frame that is not understood: %s" % (self.peer, reason)) from error
        expected_bytes = sum(view.nbytes for view in views)
        if payload_bytes != expected_bytes:
            raise WireError("%s sent %d bytes where %d were expected" % (self.peer, payload_bytes, expected_bytes))
        for view in views:
            self._fill(view)
        self.received_bytes += _HEADER.size + head_bytes + payload_bytes
        return head

    def _fill(self, view: memoryview) -> None:
        start = 0
        try:
            while start < len(view):
                self._wake_at(_WAKE_BYTES if len(view) - start >= _WAKE_BYTES + _RECORD_BYTES else 1)
                count = self._sock.recv_into(view[start:])
                if not count:
                    raise WireError("%s closed the connection" % self.peer)
                start += count
        except WireError:
            raise
        except (OSError, ValueError) as error:
            raise _lost(self.peer, error) from error

    def _wake_at(self, count: int) -> None:
        """Let the next read sleep until so many bytes are there."""
        if count != self._wakes_at:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
            self._wakes_at = count

    def under_way(self) -> int:
        """Bytes sent and not yet acknowledged by the peer; 0 where the system cannot tell."""
        try:
            return int(struct.unpack("i", fcntl.ioctl(self._sock.fileno(), termios.TIOCOUTQ, bytes(4)))[0])
        except (OSError, ValueError):  # it is closed, or no such system
            return 0

    def quiet_s(self) -> float:
        """Seconds since the peer acknowledged anything; 0 where the system cannot tell."""
        if not hasattr(socket, "TCP_INFO"):
            return 0.0
        try:
            info = self._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_ACK_BYTE + 4)
            return float(struct.unpack_from("I", info, _LAST_ACK_BYTE)[0]) / 1e3
        except (OSError, struct.error):  # it is closed, or no such system
            return 0.0

    def settimeout(self, timeout_s: Optional[float]) -> None:
        """Seconds of silence after which send and receive give up; None waits for ever."""
        self._sock.settimeout(timeout_s)

    def wait_for_ever(self) -> None:
        """Remove the limit on unread data; heartbeats must then tell whether the peer is alive."""
        self._sock.settimeout(None)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 0)

    def abort(self) -> None:
        """End the connection under a thread that is blocked in it."""
        self.aborted = True
        end(self._sock)

    def close(self) -> None:
        """Close the socket. Idempotent."""
        self._sock.close()


def accept(sock: socket.socket, tls: ssl.SSLContext, timeout_s: float) -> Connection:
    """The server's side of the handshake on an accepted socket. Raises WireError for a stranger."""
    return shake_hands(wrapped(sock, tls, timeout_s, server_side=True), timeout_s)


def connect(address: str, port: int, tls: ssl.SSLContext, timeout_s: float, peer: str = SERVER) -> Connection:
    """Connect to a run's server or to another of its members.

    Raises WireError where nothing answers, or another name does.
    """
    try:
        sock = socket.create_connection((address, port), timeout_s)
    except OSError as error:
        raise WireError("cannot reach %s:%d: %s" % (address, port, error)) from error
    connection = shake_hands(wrapped(sock, tls, timeout_s), timeout_s)
    if connection.peer != peer:
        connection.close()
        wanted = "the server of this run" if peer == SERVER else peer
        raise WireError("%s:%d is %r, not %s" % (address, port, connection.peer, wanted))
    return connection


def wrapped(sock: socket.socket, tls: ssl.SSLContext, timeout_s: float, server_side: bool = False) -> ssl.SSLSocket:
    """One end of a connection, before the handshake. Raises WireError where it is gone already."""
    try:
        sock.settimeout(timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(timeout_s * 1000))
        return tls.wrap_socket(sock, server_side=server_side, do_handshake_on_connect=False)
    except (OSError, ValueError) as error:
        sock.close()
        raise WireError("TLS handshake failed: %s" % error) from error


def shake_hands(sock: ssl.SSLSocket, timeout_s: float) -> Connection:
    """The connection after its handshake. Raises WireError for a stranger."""
    try:
        sock.do_handshake()
        return Connection(sock, timeout_s)
    except (OSError, ValueError) as error:
        sock.close()
        raise WireError("TLS handshake failed: %s" % error) from error


def end(sock: ssl.SSLSocket) -> None:
    """End a connection under a thread that is blocked in it."""
    with contextlib.suppress(OSError):  # it may have ended already
        # SSLSocket.shutdown would drop the TLS object that the other thread is using.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _common_name(sock: ssl.SSLSocket) -> str:
    subject: Any = (sock.getpeercert() or {}).get("subject", ())
    return str(dict(pair[0] for pair in subject).get("commonName", ""))


def _lost(peer: str, error: BaseException) -> WireError:
    if isinstance(error, socket.timeout):
        return WireError("%s did not answer in time" % peer)
    return WireError("lost %s: %s" % (peer, error))


def as_bytes(arrays: Sequence[Any]) -> Tuple[memoryview, ...]:
    """The raw bytes of contiguous arrays, as views that share their memory."""
    return tuple(memoryview(array).cast("B") for array in arrays if array.size)


def digest(arrays: Sequence[Any]) -> str:
    """A digest that is equal for arrays of equal bytes."""
    found = hashlib.sha256()
    for view in as_bytes(arrays):
        found.update(view)
    return found.hexdigest()
