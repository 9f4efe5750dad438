"""This module reads NVIDIA GPUs through the driver's library (NVML), loaded with ctypes.

A GPU with an energy counter that moves (Volta and later) is read in joules, others in watts. Only
the GPUs in CUDA_VISIBLE_DEVICES are read. A GPU that is lost is named, and leaves the others alone.
On Jetsons the library may load and support nothing: the counters are then unavailable, not zero.
"""

import ctypes
import functools
import os
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from profilers.file_tree import FileTree, Unavailable, fail
from profilers.sensors.base import DiscoveredSensors, Sensor, check_sensors, unavailable
from profilers.sensors.visible_gpus import (
    CUDA_VARIABLE,
    ORDER_VARIABLE,
    none_visible,
    numbered_otherwise,
    visible_gpus,
)

LIBRARY = "libnvidia-ml.so.1"
#: NVML's error of a GPU that has fallen off the bus.
GPU_IS_LOST = 15
GRAPHICS_CLOCK, MEMORY_CLOCK = 0, 2
#: An energy counter that stands still for so long is not used; those of data centre GPUs change
#: every 20 to 100 ms.
STILL_S = 0.5


class _Utilisation(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Lost(Unavailable):
    """A GPU does not answer at all any more."""


class Library:
    """The loaded library. Raises Unavailable where the library or a driver is missing."""

    def __init__(self, name: str = LIBRARY) -> None:
        try:
            self._library = ctypes.CDLL(name)
        except OSError:
            raise Unavailable("no NVIDIA driver here (%s cannot be loaded)" % name) from None
        self.call("nvmlInit_v2")

    def call(self, function: str, *arguments: object) -> None:
        """Call a function of the library. Raises Unavailable with NVML's error message."""
        try:
            code = getattr(self._library, function)(*arguments)
        except AttributeError:
            raise Unavailable("this driver has no %s" % function) from None
        if code != 0:
            self._library.nvmlErrorString.restype = ctypes.c_char_p
            reason = "%s: %s" % (function, self._library.nvmlErrorString(code).decode())
            raise Lost(reason) if code == GPU_IS_LOST else Unavailable(reason)

    def gpus(self) -> Tuple["Gpu", ...]:
        """All GPUs in PCI bus order."""
        count = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return tuple(Gpu(self, index) for index in range(count.value))


class Gpu:
    """One GPU; each method raises Unavailable where the GPU does not support it."""

    def __init__(self, library: Library, index: int) -> None:
        self.index = index
        self._library = library
        self._handle = ctypes.c_void_p()
        self._fault: Optional[Unavailable] = None
        try:
            library.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(self._handle))
        except Unavailable as error:
            self._fault = error

    @property
    def fault(self) -> Optional[str]:
        """Why the GPU does not answer at all; None for one that does."""
        try:
            self.uuid()
        except Lost as error:
            return str(error)
        except Unavailable:
            return None if self._fault is None else str(self._fault)
        return None

    def name(self) -> str:
        return self._text("nvmlDeviceGetName")

    def uuid(self) -> str:
        return self._text("nvmlDeviceGetUUID")

    def joules(self) -> float:
        """Joules since the driver was loaded."""
        return float(self._ask("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong()).value) / 1e3

    def watts(self) -> float:
        """Watts of the board now."""
        return float(self._ask("nvmlDeviceGetPowerUsage", ctypes.c_uint()).value) / 1e3

    def clock(self, kind: int) -> float:
        """The clock of a kind, GRAPHICS_CLOCK or MEMORY_CLOCK, in Hz."""
        return 1e6 * float(self._ask("nvmlDeviceGetClockInfo", ctypes.c_uint(), ctypes.c_int(kind)).value)

    def load(self) -> float:
        """Share of the last sample period in which a kernel ran, 0..1."""
        return float(self._ask("nvmlDeviceGetUtilizationRates", _Utilisation()).gpu) / 100.0

    def memory_bytes(self) -> float:
        """Bytes of memory in use by all processes."""
        return float(self._ask("nvmlDeviceGetMemoryInfo", _Memory()).used)

    def free_bytes(self) -> int:
        """Bytes of memory that no process has."""
        return int(self._ask("nvmlDeviceGetMemoryInfo", _Memory()).free)

    def compute_capability(self) -> Tuple[int, int]:
        """(major, minor) of CUDA's compute capability."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvmlDeviceGetCudaComputeCapability", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def slices(self) -> Tuple[str, ...]:
        """UUIDs of the slices (MIG) that the GPU is divided into; none where it is not."""
        found = []
        try:
            most = self._ask("nvmlDeviceGetMaxMigDeviceCount", ctypes.c_uint()).value
        except Unavailable:
            return ()
        for index in range(most):
            try:
                part = self._ask("nvmlDeviceGetMigDeviceHandleByIndex", ctypes.c_void_p(), ctypes.c_uint(index))
                found.append(_text(functools.partial(self._library.call, "nvmlDeviceGetUUID", part)))
            except Unavailable:
                continue  # fewer slices than there may be
        return tuple(found)

    def _ask(self, function: str, answer: Any, *arguments: object) -> Any:
        self._call(function, *(arguments + (ctypes.byref(answer),)))
        return answer

    def _text(self, function: str) -> str:
        return _text(functools.partial(self._call, function))

    def _call(self, function: str, *arguments: object) -> None:
        if self._fault is not None:
            raise self._fault
        self._library.call(function, self._handle, *arguments)


def _text(ask: Callable[..., None]) -> str:
    """What ``ask`` writes into a buffer of a length."""
    text = ctypes.create_string_buffer(96)
    ask(text, ctypes.c_uint(len(text)))
    return text.value.decode("utf-8", "replace")


def board_power(gpu: Gpu) -> Sensor:
    """A GPU's board power: joules where it has an energy counter, else watts."""
    counts = counts_energy(gpu)
    return Sensor("nvml:%d" % gpu.index, "gpu", gpu.joules if counts else gpu.watts, counts_joules=counts)


def counts_energy(gpu: Gpu) -> bool:
    """Whether the GPU has an energy counter that moves within STILL_S."""
    until_s = time.monotonic() + STILL_S
    try:
        before_j = gpu.joules()
        while gpu.joules() <= before_j:
            if time.monotonic() > until_s:
                return False
            time.sleep(0.005)
    except Unavailable:
        return False
    return True


def gpus(tree: FileTree, library: str = LIBRARY) -> Tuple[Gpu, ...]:
    """The visible GPUs that answer, at least one.

    Raises Unavailable without any, and for another file tree than the machine's own.
    """
    seen = _visible(tree, library)
    answering = tuple(gpu for gpu in seen if gpu.fault is None)
    if not answering:
        raise Unavailable(_faults(seen))
    return answering


def _visible(tree: FileTree, library: str) -> Tuple[Gpu, ...]:
    """The GPUs that CUDA may use, lost ones included; at least one. Raises Unavailable."""
    present = installed(tree, library)
    setting = os.environ.get(CUDA_VARIABLE)
    slices: Dict[str, int] = {}
    if setting is not None and "MIG-" in setting:
        slices = {name: index for index, gpu in enumerate(present) for name in gpu.slices()}
    chosen = visible_gpus([_uuid(gpu) for gpu in present], setting, slices)
    if not chosen:
        raise Unavailable("; ".join(filter(None, (none_visible(setting, len(present)), _faults(present)))))
    return tuple(present[index] for index in chosen)


def _faults(found: Sequence[Gpu]) -> str:
    return "; ".join("GPU %d: %s" % (gpu.index, gpu.fault) for gpu in found if gpu.fault)


def installed(tree: FileTree, library: str = LIBRARY) -> Tuple[Gpu, ...]:
    """All GPUs of the machine, at least one. Raises Unavailable."""
    if not tree.is_own:
        raise Unavailable("NVML reads no other file tree than the machine's own")
    found = Library(library).gpus()
    if not found:
        raise Unavailable("the NVIDIA driver sees no GPU")
    return found


def discover(tree: FileTree, library: str = LIBRARY) -> DiscoveredSensors:
    """A sensor for each visible GPU; one that is lost, or in doubt, has the reason."""
    try:
        doubt = numbered_otherwise(
            len(installed(tree, library)), os.environ.get(CUDA_VARIABLE), os.environ.get(ORDER_VARIABLE)
        )
        return unavailable("nvml", doubt) if doubt else check_sensors(list(map(board_power, _visible(tree, library))))
    except Unavailable as error:
        return unavailable("nvml", error)


def candidates(tree: FileTree, library: str = LIBRARY) -> List[Tuple[str, Callable[[], float]]]:
    """(counter, reader) pairs of the first GPU; ``profilers.counters`` defines the counters."""
    try:
        gpu = gpus(tree, library)[0]
    except Unavailable as error:
        return [(name, functools.partial(fail, str(error))) for name in ("f_gpu", "f_emc", "u_gpu", "m_gpu")]
    return [
        ("f_gpu", functools.partial(gpu.clock, GRAPHICS_CLOCK)),
        ("f_emc", functools.partial(gpu.clock, MEMORY_CLOCK)),
        ("u_gpu", gpu.load),
        ("m_gpu", gpu.memory_bytes),
    ]


def _uuid(gpu: Gpu) -> str:
    """The UUID of a GPU; "" where it has none."""
    try:
        return gpu.uuid()
    except Unavailable:
        return ""
