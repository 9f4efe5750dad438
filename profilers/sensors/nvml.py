"""NVIDIA GPUs through the driver's library (NVML), called with ctypes: nothing to install.

A GPU that counts its energy (Volta on) is read that way, others by their watts. On Jetsons the
library may load and then support nothing: that is a reason, not a zero.
"""

import ctypes
import functools
from typing import Any, Callable, List, Tuple

from profilers.sensors.base import Found, Sensor, proven
from profilers.tree import Tree, Unavailable, fail

LIBRARY = "libnvidia-ml.so.1"
GRAPHICS_CLOCK, MEMORY_CLOCK = 0, 2


class _Utilisation(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Library:
    """The loaded and initialised library. Raises Unavailable where there is none, or no driver."""

    def __init__(self, name=LIBRARY):
        # type: (str) -> None
        try:
            self._library = ctypes.CDLL(name)
        except OSError:
            raise Unavailable("no NVIDIA driver here (%s cannot be loaded)" % name) from None
        self.call("nvmlInit_v2")

    def call(self, function, *arguments):
        # type: (str, object) -> None
        """Call a function of the library. Raises Unavailable with NVML's own words on an error."""
        try:
            code = getattr(self._library, function)(*arguments)
        except AttributeError:
            raise Unavailable("this driver has no %s" % function) from None
        if code != 0:
            self._library.nvmlErrorString.restype = ctypes.c_char_p
            raise Unavailable("%s: %s" % (function, self._library.nvmlErrorString(code).decode()))

    def gpus(self):
        # type: () -> Tuple[Gpu, ...]
        count = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return tuple(Gpu(self, index) for index in range(count.value))


class Gpu:
    """One GPU; every method raises Unavailable where it does not support the question."""

    def __init__(self, library, index):
        # type: (Library, int) -> None
        self.index = index
        self._library = library
        self._handle = ctypes.c_void_p()
        library.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(self._handle))

    def name(self):
        # type: () -> str
        text = ctypes.create_string_buffer(96)
        self._library.call("nvmlDeviceGetName", self._handle, text, ctypes.c_uint(len(text)))
        return text.value.decode("utf-8", "replace")

    def joules(self):
        # type: () -> float
        """Energy since the driver was loaded."""
        return float(self._ask("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong()).value) / 1e3

    def watts(self):
        # type: () -> float
        return float(self._ask("nvmlDeviceGetPowerUsage", ctypes.c_uint()).value) / 1e3

    def clock(self, kind):
        # type: (int) -> float
        """GRAPHICS_CLOCK or MEMORY_CLOCK in Hz."""
        return 1e6 * float(self._ask("nvmlDeviceGetClockInfo", ctypes.c_uint(), ctypes.c_int(kind)).value)

    def load(self):
        # type: () -> float
        """Share of the last sample period in which a kernel ran."""
        return float(self._ask("nvmlDeviceGetUtilizationRates", _Utilisation()).gpu) / 100.0

    def memory_bytes(self):
        # type: () -> float
        """Memory in use, by all processes."""
        return float(self._ask("nvmlDeviceGetMemoryInfo", _Memory()).used)

    def _ask(self, function, answer, *arguments):
        # type: (str, Any, object) -> Any
        self._library.call(function, self._handle, *(arguments + (ctypes.byref(answer),)))
        return answer


class GpuPower(Sensor):
    """A GPU's board power: joules where it counts them, else watts."""

    covers = "gpu"

    def __init__(self, gpu):
        # type: (Gpu) -> None
        self.name = "nvml:%d" % gpu.index
        self._read = gpu.joules  # type: Callable[[], float]
        self.counts_joules = True
        try:
            gpu.joules()
        except Unavailable:
            self._read = gpu.watts
            self.counts_joules = False

    def read(self):
        # type: () -> float
        return self._read()


def gpus(tree, library=LIBRARY):
    # type: (Tree, str) -> Tuple[Gpu, ...]
    """The machine's GPUs. Raises Unavailable without a driver and for an emulated device."""
    if tree.emulated:
        raise Unavailable("an emulated device has no GPU of NVML's")
    return Library(library).gpus()


def discover(tree, library=LIBRARY):
    # type: (Tree, str) -> Found
    """A sensor for each GPU."""
    try:
        return proven([GpuPower(gpu) for gpu in gpus(tree, library)])
    except Unavailable as error:
        return Found((), (("nvml", str(error)),))


def candidates(tree, library=LIBRARY):
    # type: (Tree, str) -> List[Tuple[str, Callable[[], float]]]
    """(counter, reader) pairs of the first GPU; see ``profilers.counters`` for their meanings."""
    try:
        found = gpus(tree, library)
        if not found:
            raise Unavailable("the NVIDIA driver sees no GPU")
    except Unavailable as error:
        return [(name, functools.partial(fail, str(error))) for name in ("f_gpu", "f_emc", "u_gpu", "m_gpu")]
    gpu = found[0]
    return [("f_gpu", functools.partial(gpu.clock, GRAPHICS_CLOCK)),
            ("f_emc", functools.partial(gpu.clock, MEMORY_CLOCK)),
            ("u_gpu", gpu.load), ("m_gpu", gpu.memory_bytes)]

