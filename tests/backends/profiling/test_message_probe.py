"""Messages over a link, both ends in this process, over loopback."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.network import framing
from backends.profiling import message_probe
from backends.profiling.probing import LinkError
from backends.protocol.frames import ProbeMessage
from backends.protocol.orders import SendMessages, ServeMessages
from planner.agents.certificates import Authority
from tests.running import HANG_S
from tests.serving import LOOPBACK, Serving, quiet


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture
def patience(monkeypatch):
    monkeypatch.setattr(message_probe, "SILENCE_LIMIT_S", 0.5)


def serving_as(identity):
    return Serving(message_probe.serve, ServeMessages(LOOPBACK, identity))


def send(identity, port, sizes=(), **options):
    return message_probe.send(quiet(), SendMessages(LOOPBACK, port, identity, tuple(sizes), **options))


def curve(authority, **options):
    with serving_as(authority.identity(framing.SERVER)) as serving:
        options.setdefault("limit_s", HANG_S)  # a busy machine measures every size, too
        result = send(authority.identity("sender"), serving.ready.port, **options)
        serving.result.result(timeout=HANG_S)
    return result


def test_the_curve_has_every_size_and_grows(authority):
    result = curve(authority, sizes=[100_000])
    points = {point.message_bytes: point for point in result.points}
    assert list(points) == [1 << 10, 1 << 14, 100_000, 1 << 18, 1 << 22]
    assert all(2 <= len(point.seconds.values) <= 5 and len(point.seconds.warmup) == 1 for point in points.values())
    assert np.median(points[1 << 22].seconds.values) > np.median(points[1 << 10].seconds.values) > 0
    assert len(result.latency_s) == message_probe.ROUND_TRIPS
    assert np.median(result.latency_s) > 0


def test_sizes_close_to_a_wanted_one_are_left_out():
    assert message_probe.ladder([]) == list(message_probe.SIZES)
    assert message_probe.ladder([4_000_000, 250_000, 251_000]) == [1 << 10, 1 << 14, 251_000, 4_000_000]


@given(st.lists(st.integers(1, 1 << 31), max_size=12))
def test_no_wanted_size_is_far_from_a_measured_one(sizes):
    ladder = message_probe.ladder(sizes)
    assert ladder == sorted(set(ladder))
    assert all(any(size <= step <= 1.5 * size for step in ladder) for size in sizes)
    assert max(ladder) >= max(sizes, default=0)


def test_processor_seconds_of_both_ends_are_those_of_encryption(authority):
    points = curve(authority).points
    for end in ("send_cpu_s", "receive_cpu_s"):
        assert 1e-12 < getattr(points[-1], end) / points[-1].message_bytes < 1e-7
        assert getattr(points[-1], end) > getattr(points[0], end)


def test_what_a_transfer_takes_from_a_computation_is_told_of_both_ends(authority):
    result = curve(authority, sizes=[1 << 20], limit_s=0.3, turns=2)
    assert 0 <= result.send_stolen_cpu_s < 1e-6
    assert 0 <= result.receive_stolen_cpu_s < 1e-6
    assert curve(authority, limit_s=0.01).send_stolen_cpu_s is None


def test_sizes_that_would_take_too_long_are_left_out(authority):
    result = curve(authority, sizes=[1 << 29], limit_s=0.5)
    largest = result.points[-1]
    assert largest.message_bytes < 1 << 29


def test_a_stranger_is_refused_and_the_peer_still_served(authority):
    identity = authority.identity(framing.SERVER)
    with serving_as(identity) as serving:
        stranger = Authority().identity("sender")._replace(authority=identity.authority)
        with pytest.raises(framing.WireError):
            send(stranger, serving.ready.port)
        assert send(authority.identity("sender"), serving.ready.port, limit_s=0.01)


def test_a_server_of_another_run_is_refused(authority, patience):
    with serving_as(Authority().identity(framing.SERVER)) as serving:
        with pytest.raises(framing.WireError, match="handshake"):
            send(authority.identity("sender"), serving.ready.port)
        with pytest.raises(LinkError, match="nobody connected.*refused"):
            serving.result.result(timeout=HANG_S)


def connect(authority, port):
    tls = framing.context(authority.identity("sender"), server_side=False)
    return framing.connect(LOOPBACK, port, tls, 5.0)


def test_a_sender_that_dies_ends_the_serving(authority):
    with serving_as(authority.identity(framing.SERVER)) as serving:
        connect(authority, serving.ready.port).abort()
        with pytest.raises(framing.WireError, match="sender"):
            serving.result.result(timeout=HANG_S)


def test_a_sender_that_falls_silent_ends_the_serving(authority, patience):
    with serving_as(authority.identity(framing.SERVER)) as serving:
        connection = connect(authority, serving.ready.port)
        with pytest.raises(framing.WireError, match="in time"):
            serving.result.result(timeout=HANG_S)
        connection.close()


def test_a_sender_cannot_make_the_other_side_hold_any_amount(authority):
    with serving_as(authority.identity(framing.SERVER)) as serving:
        connection = connect(authority, serving.ready.port)
        connection.send(ProbeMessage(message_probe.MESSAGE_LIMIT + 1))
        with pytest.raises(framing.WireError, match="limit"):
            serving.result.result(timeout=HANG_S)
        connection.close()


@pytest.mark.parametrize("silent", [True, False])
def test_a_peer_that_dies_ends_the_sender(authority, patience, silent):
    tls = framing.context(authority.identity(framing.SERVER), server_side=True)

    def serve():
        connection = framing.accept(listener.accept()[0], tls, 5.0)
        connection.receive(ProbeMessage)
        ended.wait(HANG_S if silent else 0.0)
        connection.close()

    ended = threading.Event()
    with framing.listen(LOOPBACK) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        with pytest.raises(framing.WireError, match="in time" if silent else "server"):
            send(authority.identity("sender"), port)
        ended.set()
        thread.join()
