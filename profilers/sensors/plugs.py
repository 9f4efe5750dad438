"""This module reads the watts of wall plugs over HTTP: Shelly of both generations, and Tasmota.

Watts are integrated. The energy counters of plugs are not used: their smallest step (0.1 to 10 Wh)
exceeds the energy of a measurement of minutes.
"""

import functools
import http.client
import json
import math
from typing import NamedTuple, Tuple

from profilers.file_tree import Unavailable
from profilers.sensors.base import METER_PREFIX
from profilers.sensors.polling import PolledSensor, Poller

TIMEOUT_S = 1.0
MAX_BYTES = 65536
#: More than the rating of any plug. The comparison also rejects NaN.
MAX_W = 1e5


class PlugKind(NamedTuple):
    """A kind of plug: the HTTP path, and the keys of the watts in the JSON answer."""

    path: str
    keys: Tuple[str, ...]

    def parse(self, text: str) -> float:
        """Watts in an answer.

        Raises Unavailable, also for a reading that a Shelly of the first generation calls invalid,
        and for a list: that is a strip of several plugs.
        """
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            raise Unavailable("the plug's answer is not JSON: %r" % text[:40]) from None
        if isinstance(answer, dict) and answer.get("is_valid") is False:
            raise Unavailable("the plug calls its own reading invalid")
        for key in self.keys:
            answer = answer.get(key) if isinstance(answer, dict) else None
        if isinstance(answer, bool) or not isinstance(answer, (int, float)) or not abs(answer) < MAX_W:
            raise Unavailable("the plug's answer has no number in %s" % ".".join(self.keys))
        return float(answer)


#: Shelly of the second generation and later, of the first, and Tasmota (Status 8).
KINDS = {
    "shelly": PlugKind("/rpc/Switch.GetStatus?id=0", ("apower",)),
    "shelly1": PlugKind("/meter/0", ("power",)),
    "tasmota": PlugKind("/cm?cmnd=Status%208", ("StatusSNS", "ENERGY", "Power")),
}


class Plug(PolledSensor):
    """Watts through a plug. Tasmota gives whole watts unless it is configured otherwise."""

    whole_watts_limit_s = math.inf


def plug(kind: str, address: str) -> Plug:
    """A sensor of the watts through a plug. kind: of KINDS; address: ``host`` or ``host:port``."""
    poller = Poller(functools.partial(read_watts, address, KINDS[kind]))
    return Plug("%s%s:%s" % (METER_PREFIX, kind, address), "wall", poller, float)


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
