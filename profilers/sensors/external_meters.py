"""The operator names external meters in PLANNER_METERS, separated by spaces.

- ``shelly://host[:port]``, ``shelly1://...``, ``tasmota://...``: a wall plug.
- ``csv:///path/to/log.csv``: the log of a meter. ``?offset_s=2.5``: its clock is ahead of the
  device's by that; ``column=watts``: the header's name of the watts.
"""

import os
import re
from typing import Dict
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from profilers.file_tree import FileTree, Unavailable
from profilers.sensors import plugs
from profilers.sensors.base import METER_PREFIX, DiscoveredSensors, Sensor, check_sensors
from profilers.sensors.meter_log import MeterLog

METERS_VARIABLE = "PLANNER_METERS"
_ADDRESS = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?", re.ASCII)


def discover(tree: FileTree) -> DiscoveredSensors:
    """The meters that answer; for the others, and for wrong addresses, the reason."""
    sensors, missing = [], []
    for number, url in enumerate(os.environ.get(METERS_VARIABLE, "").split(), 1):
        try:
            sensors.append(meter_sensor(url))
        except Unavailable as error:
            missing.append((METER_PREFIX + str(number), str(error)))
    return check_sensors(sensors, missing)


def meter_sensor(url: str) -> Sensor:
    """The sensor for an address. Raises Unavailable with the mistake in it."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise Unavailable("a meter's address is wrong: %s" % error) from None
    if "@" in parts.netloc:
        raise Unavailable("a meter's address takes no login")
    if parts.scheme in plugs.KINDS:
        return _plug(url, parts)
    if parts.scheme == "csv":
        return _log(url, parts)
    known = ", ".join("%s://" % kind for kind in sorted(plugs.KINDS))
    raise Unavailable("%s is no meter; known are %s and csv://" % (url, known))


def _plug(url: str, parts: SplitResult) -> Sensor:
    if not _ADDRESS.fullmatch(parts.netloc) or parts.path not in ("", "/") or parts.query:
        raise Unavailable("%s is not of the form %s://host[:port]" % (url, parts.scheme))
    return plugs.plug(parts.scheme, parts.netloc)


def _log(url: str, parts: SplitResult) -> Sensor:
    if parts.netloc or not parts.path.startswith("/"):
        raise Unavailable("%s is not of the form csv:///path/to/log.csv" % url)
    options: Dict[str, str] = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = sorted(set(options) - {"offset_s", "column"})
    if unknown:
        raise Unavailable("%s: no option %s; there are offset_s and column" % (url, ", ".join(unknown)))
    try:
        offset_s = float(options.get("offset_s") or 0.0)
    except ValueError:
        raise Unavailable("%s: offset_s is no number" % url) from None
    if not abs(offset_s) < 1e9:
        raise Unavailable("%s: offset_s is out of range" % url)
    return MeterLog(unquote(parts.path), options.get("column") or None, offset_s)
