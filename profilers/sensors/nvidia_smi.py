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
from profilers.sensors.base import NO_SENSORS, DiscoveredSensors, check_sensors, unavailable
from profilers.sensors.polling import PolledSensor, Poller
from profilers.sensors.visible_gpus import (
    CUDA_VARIABLE,
    ORDER_VARIABLE,
    none_visible,
    numbered_otherwise,
    visible_gpus,
)

#: The program in PATH, or its path on WSL.
PROGRAMS = ("nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi")
RUN_LIMIT_S = 10.0
#: The report of 16 GPUs with their processes is below 1 MB.
MAX_CHARACTERS = 4000000

_REPORT = re.compile(r"<\?xml.*</nvidia_smi_log>", re.DOTALL)
#: Paths of the board's power, since driver 530 and before; the mean of the last second first.
_POWER = tuple(
    "%s/%s" % (section, value)
    for section in ("gpu_power_readings", "power_readings")
    for value in ("average_power_draw", "power_draw", "instant_power_draw")
)


class GpuState(NamedTuple):
    """The UUID of a GPU, and its watts or the reason why it has none."""

    uuid: str
    watts: Optional[float]
    reason: Optional[str]


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
    """A sensor for each visible GPU where NVML cannot be loaded."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if not tree.is_own or program is None or _library_loads():
        return NO_SENSORS
    return polled_sensors(functools.partial(run_program, program))


def polled_sensors(ask: Callable[[], Tuple[GpuState, ...]]) -> DiscoveredSensors:
    try:
        uuids = [gpu.uuid for gpu in ask()]
    except Unavailable as error:
        return unavailable("nvidia-smi", error)
    setting = os.environ.get(CUDA_VARIABLE)
    visible = visible_gpus(uuids, setting)
    doubt = numbered_otherwise(len(uuids), setting, os.environ.get(ORDER_VARIABLE))
    if doubt or not visible:
        return unavailable("nvidia-smi", doubt or none_visible(setting, len(uuids)))
    poller = Poller(ask)
    return check_sensors(
        [PolledSensor("nvidia-smi:%d" % index, "gpu", poller, functools.partial(_watts, index)) for index in visible]
    )


def run_program(program: str) -> Tuple[GpuState, ...]:
    command, nowhere = [program, "-q", "-x"], subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, check=False, stdin=nowhere, stdout=subprocess.PIPE, stderr=nowhere, timeout=RUN_LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable("nvidia-smi cannot be run: %s" % error) from None
    text = done.stdout.decode("utf-8", "replace")
    report = _REPORT.search(text)  # for a GPU that is lost there are words around it, and an exit status
    if report is not None:
        return parse(report.group())
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
    uuid = (gpu.findtext("uuid") or "").strip()
    texts = [text.strip() for text in map(gpu.findtext, _POWER) if text]
    for text in texts:
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) W", text)
        if match:
            return GpuState(uuid, float(match.group(1)), None)
    reason = "nvidia-smi says %r instead of watts" % texts[0][:40] if texts else "nvidia-smi states no watts"
    return GpuState(uuid, None, reason)
