"""Strangers connect to a run's port: some never speak, others have no certificate or a wrong one.

    python -m benchmarks.strangers HOST PORT --silent 700 --refused 100

It says when it begins; they come until standard input ends. Silent connections that the host closes
are opened again; refused ones come one after the other, so many a second at most. At the end it
prints how many came.
"""

import argparse
import select
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

Address = tuple[str, int]
#: What a refusal may take.
LIMIT_S = 10.0
#: How often silent connections that were closed are opened again.
PAUSE_S = 1.0


class Silent:
    """Connections that never say anything. opened: in all."""

    def __init__(self, address: Address, count: int) -> None:
        self._address, self._count = address, count
        self._open: list[socket.socket] = []
        self.opened = 0

    def refill(self) -> None:
        """Open as many as were closed by the other side."""
        poll = select.poll()  # select() knows no descriptors above 1,023
        for each in self._open:
            poll.register(each, select.POLLIN)
        closed = {descriptor for descriptor, _ in poll.poll(0)}
        for each in self._open:
            if each.fileno() in closed:
                each.close()
        self._open = [each for each in self._open if each.fileno() >= 0]
        while len(self._open) < self._count:
            self._open.append(socket.create_connection(self._address, LIMIT_S))
            self.opened += 1

    def stay(self) -> None:
        """Refill for ever."""
        while True:
            time.sleep(PAUSE_S)
            self.refill()


def refused(address: Address, tls: ssl.SSLContext) -> None:
    """Try to be let in. Raises AssertionError for a host that does so."""
    with suppress(OSError), socket.create_connection(address, LIMIT_S) as plain, tls.wrap_socket(plain) as link:
        link.send(b"hello")
        while link.recv(1024):  # until it is closed, or fails
            pass


def contexts(folder: Path) -> list[ssl.SSLContext]:
    """Clients without a certificate, and with one that nobody has signed."""
    made = []
    for has_certificate in (False, True):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if has_certificate:
            key, certificate = folder / "key.pem", folder / "certificate.pem"
            command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=stranger"]
            subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
            context.load_cert_chain(certificate, key)
        made.append(context)
    return made


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("host")
    made.add_argument("port", type=int)
    made.add_argument("--silent", type=int, default=700)
    made.add_argument("--refused", type=float, default=10.0, help="a second")
    options = made.parse_args()
    silent, tries = Silent((options.host, options.port), options.silent), 0
    silent.refill()
    threading.Thread(target=silent.stay, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        clients = contexts(Path(folder))
        print("ready", flush=True)
        next_s = time.monotonic()
        while not select.select([sys.stdin], [], [], max(0.0, next_s - time.monotonic()))[0]:
            refused((options.host, options.port), clients[tries % len(clients)])
            tries += 1
            next_s += 1.0 / options.refused
    print(silent.opened, tries)


if __name__ == "__main__":
    main()
