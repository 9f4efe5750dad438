"""This module reads NVIDIA GPUs through the driver's library (NVML), loaded with ctypes.

A GPU with an energy counter that moves (Volta and later) is read in joules, others in watts. Only
the GPUs in CUDA_VISIBLE_DEVICES are read. On Jetsons the library may load and support nothing: the
counters are then unavailable, not zero.
"""

import ctypes
import functools
import os
import time
from typing import Any, Callable, List, Optional, Sequence, Tuple

from profilers.file_tree import FileTree, Unavailable, fail
from profilers.sensors.base import DiscoveredSensors, Sensor, check_sensors, unavailable

LIBRARY = "libnvidia-ml.so.1"
CUDA_VARIABLE = "CUDA_VISIBLE_DEVICES"
GRAPHICS_CLOCK, MEMORY_CLOCK = 0, 2
#: An energy counter that stands still for so long is not used; those of data centre GPUs change
#: every 20 to 100 ms.
STILL_S = 0.5


class _Utilisation(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


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
            raise Unavailable("%s: %s" % (function, self._library.nvmlErrorString(code).decode()))

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
        library.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(self._handle))

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
        function = "nvmlDeviceGetCudaComputeCapability"
        self._library.call(function, self._handle, ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def _ask(self, function: str, answer: Any, *arguments: object) -> Any:
        self._library.call(function, self._handle, *(arguments + (ctypes.byref(answer),)))
        return answer

    def _text(self, function: str) -> str:
        text = ctypes.create_string_buffer(96)
        self._library.call(function, self._handle, text, ctypes.c_uint(len(text)))
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


def visible_gpus(uuids: Sequence[str], setting: Optional[str]) -> Tuple[int, ...]:
    """Indices of the GPUs in a setting of CUDA_VISIBLE_DEVICES, in its order; None: all GPUs.

    uuids: of all GPUs, in PCI bus order, of which the setting holds indices or prefixes.
    As in CUDA, a name that fits no GPU, or several, ends the list. A slice of a GPU (MIG) stands
    for its GPU where its name contains it. CUDA orders GPUs of several kinds differently unless
    CUDA_DEVICE_ORDER is PCI_BUS_ID.
    """
    if setting is None:
        return tuple(range(len(uuids)))
    chosen: List[int] = []
    for entry in setting.split(","):
        fitting = _fitting(entry.strip(), uuids)
        if len(fitting) != 1:
            break
        if fitting[0] not in chosen:
            chosen += fitting
    return tuple(chosen)


def _fitting(entry: str, uuids: Sequence[str]) -> List[int]:
    if entry.isdigit():
        return [index for index in range(len(uuids)) if str(index) == entry]
    if entry.startswith("MIG-GPU-"):
        entry = entry[len("MIG-") :].partition("/")[0]
    return [index for index, uuid in enumerate(uuids) if entry.startswith("GPU-") and uuid.startswith(entry)]


def gpus(tree: FileTree, library: str = LIBRARY) -> Tuple[Gpu, ...]:
    """The visible GPUs, at least one.

    Raises Unavailable without any, and for another file tree than the machine's own.
    """
    present = installed(tree, library)
    setting = os.environ.get(CUDA_VARIABLE)
    chosen = visible_gpus([_uuid(gpu) for gpu in present], setting)
    if not chosen:
        raise Unavailable("%s=%s leaves none of %d GPUs" % (CUDA_VARIABLE, setting, len(present)))
    return tuple(present[index] for index in chosen)


def installed(tree: FileTree, library: str = LIBRARY) -> Tuple[Gpu, ...]:
    """All GPUs of the machine, at least one. Raises Unavailable."""
    if not tree.is_own:
        raise Unavailable("NVML reads no other file tree than the machine's own")
    found = Library(library).gpus()
    if not found:
        raise Unavailable("the NVIDIA driver sees no GPU")
    return found


def discover(tree: FileTree, library: str = LIBRARY) -> DiscoveredSensors:
    """A sensor for each GPU."""
    try:
        return check_sensors([board_power(gpu) for gpu in gpus(tree, library)])
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
