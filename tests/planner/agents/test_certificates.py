"""Who may talk to whom in the data plane."""

import datetime
import ssl
import threading

import pytest
from cryptography import x509

from backends.network import framing
from backends.protocol.frames import Done
from planner.agents.certificates import Authority


def connected(server: framing.Identity, client: framing.Identity) -> str:
    """Connect a client to a server and greet; the name by which the server knows the client."""
    names = []

    def serve() -> None:
        sock, _ = listener.accept()
        try:
            connection = framing.accept(sock, framing.context(server, server_side=True), 5.0)
            names.append(connection.peer)
            connection.send(Done())
            connection.close()
        except framing.WireError:
            sock.close()

    with framing.listen("127.0.0.1") as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            port = listener.getsockname()[1]
            connection = framing.connect("127.0.0.1", port, framing.context(client, server_side=False), 5.0)
            connection.receive(Done)  # TLS 1.3 tells a client only now that it was refused
            connection.close()
        finally:
            thread.join()
    return names[0]


def test_members_of_a_run_know_each_other_by_name() -> None:
    run = Authority()
    assert connected(run.identity(framing.SERVER), run.identity("jetson")) == "jetson"


def test_a_device_may_be_called_server() -> None:
    run = Authority()
    assert connected(run.identity(framing.SERVER), run.identity(framing.SERVER)) == framing.SERVER


def test_a_member_of_another_run_is_refused() -> None:
    with pytest.raises(framing.WireError):
        connected(Authority().identity(framing.SERVER), Authority().identity("jetson"))


def test_another_authority_of_the_same_name_vouches_for_nobody() -> None:
    run, other = Authority(), Authority()
    forged = other.identity("jetson")._replace(authority=run.identity("jetson").authority)
    with pytest.raises(framing.WireError):
        connected(run.identity(framing.SERVER), forged)


def test_a_worker_cannot_pose_as_the_server() -> None:
    run = Authority()
    with pytest.raises(framing.WireError, match="certificate"):
        connected(run.identity("jetson"), run.identity("desktop"))


@pytest.mark.parametrize("year", [1970, 2018, 2026, 2099])
def test_a_device_whose_clock_is_wrong_can_take_part(year: int) -> None:
    identity = Authority().identity("jetson")
    now = datetime.datetime(year, 1, 1, 0, 1, tzinfo=datetime.UTC)
    for text in (identity.certificate, identity.authority):
        certificate = x509.load_pem_x509_certificate(text.encode())
        assert certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def test_an_identity_does_not_hold_the_key_of_the_authority() -> None:
    run = Authority()
    one, two = run.identity("jetson"), run.identity("jetson")
    assert one.key != two.key
    assert "PRIVATE" not in one.authority + one.certificate
    assert isinstance(framing.context(one, server_side=False), ssl.SSLContext)
