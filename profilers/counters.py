"""A power model estimates watts from the eleven counters that this module reads.

Source: Gu et al., Eq. 1. A counter that cannot be read is null with a reason, never 0.

f_cpu, f_gpu, f_emc, f_cp: mean clock of the online cores of the main cluster, of graphics, of the
    memory controller (on a PC the GPU's memory clock, the only one to read), of the co-processor.
u_cpu, u_gpu, u_cp, u_mem: busy shares, and share of main memory in use, 0..1.
m_gpu, m_swap: bytes in use. c_cp: active cores of the co-processor.

The co-processor is a second cluster of cores of another design, such as Denver on a TX2.
Other machines have none. With several GPUs, the first in CUDA_VISIBLE_DEVICES is read.
"""

import functools
from typing import Callable, Dict, List, Tuple

from profilers import bsd_counters, procfs, tegra, tegrastats
from profilers.file_tree import FileTree, Unavailable
from profilers.sensors import nvml

#: The unit of each counter.
UNITS = dict.fromkeys(("f_cpu", "f_gpu", "f_emc", "f_cp"), "Hz")
UNITS.update(dict.fromkeys(("u_cpu", "u_gpu", "u_cp", "u_mem"), "1"))
UNITS.update(m_gpu="bytes", m_swap="bytes", c_cp="cores")

Reader = Callable[[], float]


class Counters:
    """The readers of the counters of one device; the first candidate that answers is chosen.

    readers: reader by counter; it raises Unavailable when it fails.
    reasons: why a counter has no reader, by counter.
    """

    def __init__(self, tree: FileTree) -> None:
        self._tegrastats = tegrastats.shared(tree.root)
        self.readers: Dict[str, Reader] = {}
        self.reasons: Dict[str, str] = {}
        self._bsd = bsd_counters.BsdCounters()
        self._choose(procfs.candidates(tree) + tegra.candidates(tree) + nvml.candidates(tree))
        if tree.is_own and "u_cpu" not in self.readers:
            self._choose(self._bsd.candidates())
        if tegra.is_tegra(tree):
            names = ("f_gpu", "u_gpu", "f_emc")
            self._choose([(name, functools.partial(self._tegrastats.read, name)) for name in names])
        self.close()
        for name in ("f_cp", "u_cp", "c_cp"):
            if name not in self.readers:
                self.reasons.setdefault(name, "no second cluster of cores is online")

    def close(self) -> None:
        """Stop the background programs; the next read starts them again."""
        self._tegrastats.close()
        self._bsd.close()

    def _choose(self, candidates: List[Tuple[str, Reader]]) -> None:
        for name, reader in candidates:
            if name in self.readers:
                continue
            try:
                reader()
            except Unavailable as error:
                self.reasons[name] = "; ".join(filter(None, (self.reasons.get(name), str(error))))
            else:
                self.readers[name] = reader
                self.reasons.pop(name, None)
