"""Wall plugs answer as their makers document, from a real server on loopback."""

import contextlib
import http.server
import json
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers.file_tree import Unavailable
from profilers.sensors import plugs

SHELLY = {
    "id": 0,
    "source": "init",
    "output": True,
    "apower": 8.9,
    "voltage": 237.5,
    "freq": 50.0,
    "current": 0.064,
    "pf": 0.61,
    "aenergy": {"total": 6.532, "by_minute": [45.199, 47.141, 88.397], "minute_ts": 1626935779},
    "temperature": {"tC": 23.5, "tF": 74.4},
}
SHELLY1 = {
    "power": 62.37,
    "overpower": 0.0,
    "is_valid": True,
    "timestamp": 1607958532,
    "counters": [61.9, 62.1, 62.2],
    "total": 4735,
}
TASMOTA = {
    "StatusSNS": {
        "Time": "2024-01-01T10:00:00",
        "ENERGY": {
            "TotalStartTime": "2023-12-06T22:20:05",
            "Total": 10.447,
            "Yesterday": 0.235,
            "Today": 0.081,
            "Power": 17,
            "ApparentPower": 30,
            "ReactivePower": 25,
            "Factor": 0.55,
            "Voltage": 232,
            "Current": 0.131,
        },
    }
}
ANSWERS = {"shelly": (SHELLY, 8.9), "shelly1": (SHELLY1, 62.37), "tasmota": (TASMOTA, 17.0)}


@pytest.mark.parametrize("kind", plugs.KINDS)
def test_the_watts_of_each_kind(kind):
    answer, watts = ANSWERS[kind]
    assert plugs.KINDS[kind].parse(json.dumps(answer)) == watts


@pytest.mark.parametrize(
    "kind, answer, reason",
    [
        ("shelly", {"code": -105, "message": "Argument 'id', value 0 not found!"}, "no number in apower"),
        ("shelly1", {**SHELLY1, "is_valid": False}, "calls its own reading invalid"),
        ("tasmota", {"WARNING": "Need user=<username>&password=<password>"}, "no number"),
    ],
)
def test_an_answer_without_watts_is_a_reason(kind, answer, reason):
    with pytest.raises(Unavailable, match=reason):
        plugs.KINDS[kind].parse(json.dumps(answer))


keys = ["StatusSNS", "ENERGY", "Power", "power", "apower"]
values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(keys), inner),
)


@given(values.map(json.dumps) | st.text(), st.sampled_from(sorted(plugs.KINDS)))
def test_any_text_parses_or_raises_unavailable(text, kind):
    with contextlib.suppress(Unavailable):
        assert abs(plugs.KINDS[kind].parse(text)) < 1e6


# -- over HTTP -------------------------------------------------------------------------------------


class Plug:
    """A server that answers as all three kinds do."""

    def __init__(self):
        self.requests = []
        self.status = 200
        self.delay_s = 0.0
        plug = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                plug.requests.append(self.path)
                time.sleep(plug.delay_s)
                kind = next(name for name, known in plugs.KINDS.items() if known.path == self.path)
                body = json.dumps(ANSWERS[kind][0]).encode()
                self.send_response(plug.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def server():
    plug = Plug()
    yield plug
    plug.server.shutdown()
    plug.server.server_close()


@pytest.mark.parametrize("kind", plugs.KINDS)
def test_a_plug_is_read_over_http_and_covers_the_wall(server, kind, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    sensor = plugs.plug(kind, server.address)
    assert (sensor.name, sensor.covers, sensor.source) == (f"meter:{kind}:{server.address}", "wall", "sensor")
    assert sensor.read() == ANSWERS[kind][1]
    assert server.requests == [plugs.KINDS[kind].path]
    sensor.close()


def test_many_reads_send_one_request_a_second(server):
    sensor = plugs.plug("shelly", server.address)
    began_s = time.monotonic()
    for _ in range(1000):
        sensor.read()
    assert len(server.requests) <= 1 + int(time.monotonic() - began_s)
    sensor.close()


def test_a_plug_that_refuses_is_a_reason(server):
    server.status = 401
    with pytest.raises(Unavailable, match=f"{server.address} answers 401 Unauthorized"):
        plugs.plug("shelly", server.address).read()


def test_a_plug_that_is_slow_is_a_reason(server, monkeypatch):
    monkeypatch.setattr(plugs, "TIMEOUT_S", 0.05)
    server.delay_s = 0.3
    with pytest.raises(Unavailable, match="does not answer: .*timed out"):
        plugs.read_watts(server.address, plugs.KINDS["shelly"])
