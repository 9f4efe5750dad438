"""This module reads NVIDIA GPUs by ``nvidia-smi -q -x`` where NVML cannot be loaded.

That happens on WSL and in some containers. A run takes tens of milliseconds of a core, so that a
thread runs it once a second.
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
from profilers.sensors.base import NO_SENSORS, DiscoveredSensors, check_sensors
from profilers.sensors.polling import PolledSensor, Poller
from profilers.sensors.visible_gpus import CUDA_VARIABLE, visible_gpus

#: The program in PATH, or its path on WSL.
PROGRAMS = ("nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi")
RUN_LIMIT_S = 10.0
#: The report of 16 GPUs with their processes is below 1 MB.
MAX_CHARACTERS = 4000000

#: Paths of the board's power, since driver 530 and before; the mean of the last second first.
_POWER = tuple(
    "%s/%s" % (section, value)
    for section in ("gpu_power_readings", "power_readings")
    for value in ("average_power_draw", "power_draw", "instant_power_draw")
)
_LIMIT = ("gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit", "power_readings/power_limit")
_UNITS = {"W": 1.0, "MHz": 1e6, "%": 0.01, "MiB": 1024.0**2}


class GpuState(NamedTuple):
    """State of a GPU; None where the driver states no value. ``reason``: why it has no watts."""

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


def parse(text: str) -> Tuple[GpuState, ...]:
    """Parse the report of ``nvidia-smi -q -x`` in any schema: GPUs in PCI bus order.

    Raises Unavailable where it is no such report, is too large or defines entities.
    """
    if len(text) > MAX_CHARACTERS or "<!ENTITY" in text:
        raise Unavailable("nvidia-smi's answer is too large or defines entities")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise Unavailable("nvidia-smi's answer is not XML: %s" % error) from None
    return tuple(_state(gpu) for gpu in root.findall("gpu"))


def discover(tree: FileTree) -> DiscoveredSensors:
    """A sensor for each visible GPU where NVML cannot be loaded and the program exists."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if tree.emulated or program is None or _library_loads():
        return NO_SENSORS
    return polled_sensors(functools.partial(run_program, program))


def polled_sensors(ask: Callable[[], Tuple[GpuState, ...]]) -> DiscoveredSensors:
    """Sensors for the GPUs in the answers of ``ask``, or the reason why there is none."""
    try:
        uuids = [gpu.uuid for gpu in ask()]
    except Unavailable as error:
        return DiscoveredSensors((), (("nvidia-smi", str(error)),))
    poller = Poller(ask)
    return check_sensors(
        [
            PolledSensor("nvidia-smi:%d" % index, "gpu", poller, functools.partial(_watts, index))
            for index in visible_gpus(uuids, os.environ.get(CUDA_VARIABLE))
        ]
    )


def run_program(program: str) -> Tuple[GpuState, ...]:
    """Run the program. Raises Unavailable."""
    try:
        done = subprocess.run(
            [program, "-q", "-x"],
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=RUN_LIMIT_S,
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


def _watts(index: int, states: Tuple[GpuState, ...]) -> float:
    if index >= len(states):
        raise Unavailable("nvidia-smi no longer lists this GPU")
    watts = states[index].watts
    if watts is None:
        raise Unavailable(str(states[index].reason))
    return watts


def _state(gpu: ElementTree.Element) -> GpuState:
    watts = _first(gpu, *_POWER)
    texts = [text for text in map(gpu.findtext, _POWER) if text]
    reason = "nvidia-smi says %r instead of watts" % texts[0].strip()[:40] if texts else "nvidia-smi states no watts"
    return GpuState(
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
    """The first of these quantities with a number and a known unit, in SI units or bytes."""
    for path in paths:
        match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?) (\S{1,9})\s*", gpu.findtext(path) or "")
        if match and match.group(2) in _UNITS:
            return float(match.group(1)) * _UNITS[match.group(2)]
    return None
