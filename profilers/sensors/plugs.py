"""This module reads the watts of wall plugs over HTTP: Shelly of both generations, and Tasmota.

Watts are integrated. The energy counters of plugs are not used: their smallest step (0.1 to 10 Wh)
exceeds the energy of a measurement of minutes.
"""

import functools
import http.client
import json
import math
from typing import Any, Callable, NamedTuple

from profilers.file_tree import Unavailable
from profilers.sensors.base import METER_PREFIX
from profilers.sensors.polling import PolledSensor, Poller

TIMEOUT_S = 1.0
MAX_BYTES = 65536
#: More than the rating of any plug. The comparison also rejects NaN.
MAX_W = 1e5


class PlugKind(NamedTuple):
    """The HTTP path of a kind of plug, and the parser of its answer into watts."""

    path: str
    parse: Callable[[str], float]


def parse_shelly(text: str) -> float:
    """Parse ``apower`` of Shelly Gen2 and later, Switch.GetStatus, in W. Raises Unavailable."""
    return _watts(_decoded(text), "apower")


def parse_shelly1(text: str) -> float:
    """Parse ``power`` of Shelly Gen1, /meter/0, in W. Raises Unavailable, also if invalid."""
    answer = _decoded(text)
    if isinstance(answer, dict) and answer.get("is_valid") is False:
        raise Unavailable("the plug calls its own reading invalid")
    return _watts(answer, "power")


def parse_tasmota(text: str) -> float:
    """Parse StatusSNS.ENERGY.Power of Tasmota, Status 8, in W.

    Raises Unavailable, also for a list: that is a strip of several plugs.
    """
    return _watts(_decoded(text), "StatusSNS", "ENERGY", "Power")


KINDS = {
    "shelly": PlugKind("/rpc/Switch.GetStatus?id=0", parse_shelly),
    "shelly1": PlugKind("/meter/0", parse_shelly1),
    "tasmota": PlugKind("/cm?cmnd=Status%208", parse_tasmota),
}


class Plug(PolledSensor):
    """Watts through a plug. Tasmota gives whole watts unless it is configured otherwise."""

    whole_watts_limit_s = math.inf


def plug(kind: str, address: str, emulated: bool) -> Plug:
    """A sensor of the watts through a plug. kind: of KINDS; address: ``host`` or ``host:port``."""
    poller = Poller(functools.partial(read_watts, address, KINDS[kind]))
    return Plug("%s%s:%s" % (METER_PREFIX, kind, address), "wall", poller, float, emulated)


def read_watts(address: str, kind: PlugKind) -> float:
    """Watts now, without a proxy. Raises Unavailable."""
    try:
        connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
        try:
            connection.request("GET", kind.path)
            answer = connection.getresponse()
            text = answer.read(MAX_BYTES).decode("utf-8", "replace")
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError, OverflowError) as error:
        raise Unavailable("%s does not answer: %s" % (address, error)) from None
    if answer.status != 200:
        raise Unavailable("%s answers %d %s" % (address, answer.status, answer.reason))
    return kind.parse(text)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Unavailable("the plug's answer is not JSON: %r" % text[:40]) from None


def _watts(answer: Any, *path: str) -> float:
    for key in path:
        answer = answer.get(key) if isinstance(answer, dict) else None
    if isinstance(answer, bool) or not isinstance(answer, (int, float)) or not abs(answer) < MAX_W:
        raise Unavailable("the plug's answer has no number in %s" % ".".join(path))
    return float(answer)
