"""Frames arrive whole, from members of the run only."""

import json
import os
import socket
import ssl
import struct
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.network import framing
from backends.protocol.frames import Done, Scores, WeightsOffer
from backends.protocol.json_messages import encode_list
from planner.agents.certificates import Authority
from tests.running import HANG_S, until

AUTHORITY = Authority()
SERVER = AUTHORITY.identity(framing.SERVER)
WORKER = AUTHORITY.identity("nano")
HEADER = struct.Struct("!4sIQ")
DONE = b'{"type": "done"}'


def client_tls(identity=WORKER):
    return framing.context(identity, server_side=False)


@contextmanager
def listening(identity=SERVER, timeout_s=HANG_S):
    """A server that accepts one connection; yields its port and what came of it."""
    listener = framing.listen("127.0.0.1")
    came = []

    def accept():
        try:
            sock, _ = listener.accept()
            came.append(framing.accept(sock, framing.context(identity, server_side=True), timeout_s))
        except OSError as error:
            came.append(error)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()

    def result():
        thread.join(HANG_S)
        return came[0]

    yield listener.getsockname()[1], result
    listener.close()
    for connection in came:
        if isinstance(connection, framing.Connection):
            connection.close()


@pytest.fixture
def pair():
    """Both ends of one connection: the worker's, the server's."""
    with listening() as (port, accepted):
        near = framing.connect("127.0.0.1", port, client_tls(), 5.0)
        yield near, accepted()
        near.close()


def test_who_reads_a_long_payload_is_not_woken_for_every_packet(pair, monkeypatch):
    near, far = pair
    content = os.urandom(400_000)
    buffer, least = bytearray(len(content)), []
    receive = ssl.SSLSocket.recv_into

    def wakes_at():
        return far._sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)

    monkeypatch.setattr(ssl.SSLSocket, "recv_into", lambda *args: least.append(wakes_at()) or receive(*args))

    def trickle():
        near._sock.sendall(HEADER.pack(b"plnr", len(DONE), len(content)) + DONE)
        for start in range(0, len(content), 1000):
            near._sock.sendall(content[start : start + 1000])
            time.sleep(0.001)

    thread = threading.Thread(target=trickle)
    thread.start()
    far.receive(Done, payload=lambda _: (memoryview(buffer),))
    thread.join()
    assert bytes(buffer) == content
    assert max(least) > 10_000, "it slept for many packets at a time"
    assert wakes_at() == 1, "a short frame wakes it at once"


def test_each_end_knows_the_other_by_its_certificate(pair):
    near, far = pair
    assert (near.peer, far.peer) == (framing.SERVER, "nano")


@settings(max_examples=25, deadline=None)
@given(
    digest=some.text(max_size=9),
    sizes=some.lists(some.sampled_from([0, 1, 5, 8191, 16_384, 17_000, 70_000]), max_size=3),
)
def test_a_frame_arrives_whole_in_the_buffers_it_is_meant_for(digest, sizes):
    arrays = [np.random.default_rng(0).normal(size=size).astype(np.float32) for size in sizes]
    buffers = [np.empty_like(array) for array in arrays]
    with listening() as (port, accepted):
        near = framing.connect("127.0.0.1", port, client_tls(), 5.0)
        far = accepted()
        sender = threading.Thread(target=near.send, args=(WeightsOffer(digest), framing.as_bytes(arrays)))
        sender.start()
        head = far.receive(WeightsOffer, payload=lambda _: framing.as_bytes(buffers))
        sender.join(HANG_S)
        near.close()
    assert head == WeightsOffer(digest)
    for array, buffer in zip(arrays, buffers, strict=True):
        np.testing.assert_array_equal(array, buffer)
    whole = HEADER.size + len(json.dumps(encode_list(head))) + sum(array.nbytes for array in arrays)
    assert near.sent_bytes == far.received_bytes == whole
    assert near.received_bytes == far.sent_bytes == 0


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        HEADER.pack(b"plnr", 2**32 - 1, 0),
        HEADER.pack(b"plnr", len(DONE), 2**63) + DONE,
        HEADER.pack(b"plnr", len(DONE), 1) + DONE + b"x",
        HEADER.pack(b"plnr", 2, 0) + b"[]",
        HEADER.pack(b"plnr", 3, 0) + b"\xff\xff\xff",
        HEADER.pack(b"plnr", 100_000, 0) + b"[" * 100_000,
    ],
    ids=["other protocol", "giant object", "giant payload", "unexpected payload", "no object", "no text", "deep"],
)
def test_what_is_no_frame_is_refused_before_it_costs_anything(pair, raw):
    near, far = pair
    near._sock.sendall(raw)
    with pytest.raises(framing.WireError, match="nano"):
        far.receive(Done)
    assert far.received_bytes == 0


def test_an_end_in_the_middle_of_a_frame_is_a_lost_peer(pair):
    near, far = pair
    near._sock.sendall(HEADER.pack(b"plnr", 50, 0) + b'{"los')
    near.close()
    with pytest.raises(framing.WireError, match="nano"):
        far.receive(Done)


def test_silence_is_a_lost_peer_after_the_timeout(pair):
    _, far = pair
    far.settimeout(0.05)
    with pytest.raises(framing.WireError, match="did not answer in time"):
        far.receive(Done)


def test_abort_frees_a_thread_that_waits(pair):
    _, far = pair
    far.settimeout(None)
    threading.Timer(0.1, far.abort).start()
    with pytest.raises(framing.WireError):
        far.receive(Done)
    far.abort()  # once more does no harm


def test_a_worker_of_another_run_is_refused():
    stranger = Authority().identity("nano")._replace(authority=SERVER.authority)
    with listening() as (port, accepted):
        with pytest.raises(framing.WireError):
            connection = framing.connect("127.0.0.1", port, client_tls(stranger), 5.0)
            connection.receive(Done)  # TLS 1.3 tells a client only when it reads
        assert "TLS handshake failed" in str(accepted())


def test_a_server_of_another_run_is_refused():
    other = Authority().identity(framing.SERVER)
    with listening(other) as (port, accepted):
        with pytest.raises(framing.WireError, match="TLS handshake failed"):
            framing.connect("127.0.0.1", port, client_tls(), 5.0)
        assert isinstance(accepted(), framing.WireError)


def test_a_fellow_worker_cannot_pose_as_the_server():
    with listening(AUTHORITY.identity("tx2")) as (port, _), pytest.raises(framing.WireError):
        framing.connect("127.0.0.1", port, client_tls(), 5.0)


def test_one_without_a_certificate_is_refused():
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.load_verify_locations(cadata=SERVER.authority)
    with listening() as (port, accepted), socket.create_connection(("127.0.0.1", port)) as sock:
        with pytest.raises(OSError), tls.wrap_socket(sock) as member:
            member.recv(1)
            raise ConnectionError("closed without an alert")
        assert isinstance(accepted(), framing.WireError)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # that we speak the old versions here
@pytest.mark.parametrize(
    ("version", "spoken"), [("TLSv1", False), ("TLSv1_1", False), ("TLSv1_2", True), ("TLSv1_3", True)]
)
def test_only_tls_from_version_1_2_is_spoken(version, spoken):
    tls = client_tls()
    tls.set_ciphers("ALL:@SECLEVEL=0")
    tls.options &= ~(ssl.OP_NO_TLSv1 | ssl.OP_NO_TLSv1_1)
    tls.minimum_version = tls.maximum_version = getattr(ssl.TLSVersion, version)
    server = framing.context(SERVER, server_side=True)
    server.set_ciphers("ALL:@SECLEVEL=0")  # so that it is our refusal, not the system's
    ours, theirs = socket.socketpair()
    came = []

    def accept():
        try:
            came.append(server.wrap_socket(ours, server_side=True).version())
        except OSError as error:
            came.append(error)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        tls.wrap_socket(theirs).close()
    except OSError:
        theirs.close()
    thread.join(HANG_S)
    assert (came == [version.replace("_", ".")]) == spoken, came


def test_garbage_and_silence_do_not_pass_the_handshake():
    for garbage in (b"\x00" * 500, b""):
        with listening(timeout_s=0.3) as (port, accepted), socket.create_connection(("127.0.0.1", port)) as sock:
            sock.sendall(garbage)
            assert "TLS handshake failed" in str(accepted())


def test_no_key_is_left_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    client_tls()
    assert list(tmp_path.iterdir()) == []


def test_an_unreachable_server_is_named():
    listener = framing.listen("127.0.0.1")
    port = listener.getsockname()[1]
    listener.close()
    with pytest.raises(framing.WireError, match=f"cannot reach 127.0.0.1:{port}"):
        framing.connect("127.0.0.1", port, client_tls(), 1.0)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ({"type": "scores", "loss": 1, "metrics": {}}, "scores: missing 'seconds'"),
        ({"type": "scores", "loss": 1, "metrics": {}, "seconds": 1, "mood": 7}, "scores: unknown 'mood'"),
        (
            {"type": "scores", "loss": "low", "metrics": {}, "seconds": 1},
            "scores.loss: expected a number, found 'low'",
        ),
        ({"type": "scores", "loss": True, "metrics": {}, "seconds": 1}, "scores.loss: expected a number, found True"),
        ({"type": "finish", "hand_over": True}, "unknown message 'finish'; expected scores"),
        ({}, "unknown message None; expected scores"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_frame_with_other_fields_is_refused_by_its_name_and_the_field(pair, head, reason):
    near, far = pair
    text = json.dumps(head).encode()
    near._sock.sendall(HEADER.pack(b"plnr", len(text), 0) + text)
    with pytest.raises(framing.WireError) as refusal:
        far.receive(Scores)
    assert str(refusal.value) == f"nano sent a frame that is not understood: {reason}"


def test_the_time_since_the_peer_acknowledged_something_is_known(pair):
    near, far = pair
    until(lambda: near.quiet_s() > 0.1, lambda: "it goes on")
    sent_s = time.perf_counter()
    near.send(Done())
    far.receive(Done)
    until(lambda: near.quiet_s() < time.perf_counter() - sent_s + 0.05, lambda: "what it acknowledged is not known")
    near.close()
    assert near.quiet_s() == 0.0


def test_what_the_peer_has_not_taken_is_under_way(pair):
    near, far = pair
    assert near.under_way() == 0
    content = bytes(8 << 20)  # more than any receiver's system takes unread
    sender = threading.Thread(target=near.send, args=(Done(), (memoryview(content),)))
    sender.start()
    until(lambda: near.under_way() > 0, lambda: "all of it was taken")
    buffer = bytearray(len(content))
    far.receive(Done, payload=lambda _: (memoryview(buffer),))
    sender.join()
    until(lambda: near.under_way() == 0, lambda: "it never was")
    near.close()
    assert near.under_way() == 0
