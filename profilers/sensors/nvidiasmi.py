"""NVIDIA GPUs by ``nvidia-smi -q -x``, where the library beside it cannot be loaded (WSL, some containers).

A run takes tens of milliseconds of a core: one a second, in a thread.
"""

import functools
import os
import re
import shutil
import subprocess
from typing import Callable, NamedTuple, Optional, Tuple
from xml.etree import ElementTree

from profilers.file_tree import FileTree, Unavailable
from profilers.sensors import nvml
from profilers.sensors.base import NOTHING, Found, proven
from profilers.sensors.polling import PolledSensor, Poller
from profilers.sensors.visible_gpus import VARIABLE, visible

#: By its name, or where WSL has it.
PROGRAMS = ("nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi")
LIMIT_S = 10.0
#: A machine of 16 GPUs with their processes says less than 1 MB.
MAX_CHARACTERS = 4000000

#: Where the schemas have the board's power: until 530, and since; the last second's mean is what is integrated.
_POWER = tuple(
    "%s/%s" % (section, value)
    for section in ("gpu_power_readings", "power_readings")
    for value in ("average_power_draw", "power_draw", "instant_power_draw")
)
_LIMIT = ("gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit", "power_readings/power_limit")
_UNITS = {"W": 1.0, "MHz": 1e6, "%": 0.01, "MiB": 1024.0**2}


class State(NamedTuple):
    """A GPU at one moment; None where the driver does not say. Without watts there is the ``reason``."""

    name: str
    uuid: str
    watts: Optional[float]
    reason: Optional[str]
    limit_w: Optional[float]
    graphics_hz: Optional[float]
    memory_hz: Optional[float]
    load: Optional[float]
    memory_used_bytes: Optional[float]
    memory_total_bytes: Optional[float]


def parse(text: str) -> Tuple[State, ...]:
    """What ``nvidia-smi -q -x`` says, in any schema: its GPUs in the order of the bus.

    Raises Unavailable where the text is no such report, is of absurd size or defines entities.
    """
    if len(text) > MAX_CHARACTERS or "<!ENTITY" in text:
        raise Unavailable("nvidia-smi's answer is too large or defines entities")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise Unavailable("nvidia-smi's answer is not XML: %s" % error) from None
    return tuple(_state(gpu) for gpu in root.findall("gpu"))


def discover(tree: FileTree) -> Found:
    """A sensor for each GPU that may be used, if NVML cannot be loaded and the program is there."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if tree.emulated or program is None or _library_loads():
        return NOTHING
    return answering(functools.partial(ask, program))


def answering(asked: Callable[[], Tuple[State, ...]]) -> Found:
    """Sensors for the GPUs in the answers of ``asked``, or the reason why there is none."""
    try:
        uuids = [gpu.uuid for gpu in asked()]
    except Unavailable as error:
        return Found((), (("nvidia-smi", str(error)),))
    poller = Poller(asked)
    return proven(
        [
            PolledSensor("nvidia-smi:%d" % index, "gpu", poller, functools.partial(_watts, index))
            for index in visible(uuids, os.environ.get(VARIABLE))
        ]
    )


def ask(program: str) -> Tuple[State, ...]:
    """Run the program. Raises Unavailable."""
    try:
        done = subprocess.run(
            [program, "-q", "-x"],
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=LIMIT_S,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable("nvidia-smi cannot be run: %s" % error) from None
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        raise Unavailable("nvidia-smi failed: %s" % " ".join(text.split())[:200])
    return parse(text)


def _library_loads() -> bool:
    try:
        nvml.Library()
    except Unavailable:
        return False
    return True


def _watts(index: int, states: Tuple[State, ...]) -> float:
    if index >= len(states):
        raise Unavailable("nvidia-smi no longer lists this GPU")
    watts = states[index].watts
    if watts is None:
        raise Unavailable(str(states[index].reason))
    return watts


def _state(gpu: ElementTree.Element) -> State:
    watts = _first(gpu, *_POWER)
    said = [text for text in map(gpu.findtext, _POWER) if text]
    reason = "nvidia-smi says %r instead of watts" % said[0].strip()[:40] if said else "nvidia-smi states no watts"
    return State(
        (gpu.findtext("product_name") or "").strip(),
        (gpu.findtext("uuid") or "").strip(),
        watts,
        None if watts is not None else reason,
        _first(gpu, *_LIMIT),
        _first(gpu, "clocks/graphics_clock"),
        _first(gpu, "clocks/mem_clock"),
        _first(gpu, "utilization/gpu_util"),
        _first(gpu, "fb_memory_usage/used"),
        _first(gpu, "fb_memory_usage/total"),
    )


def _first(gpu: ElementTree.Element, *paths: str) -> Optional[float]:
    """The first of these quantities that has a number and a known unit, in SI units (bytes for MiB)."""
    for path in paths:
        match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?) (\S{1,9})\s*", gpu.findtext(path) or "")
        if match and match.group(2) in _UNITS:
            return float(match.group(1)) * _UNITS[match.group(2)]
    return None
