"""Only Jetsons have these counters: integrated GPU, memory controller and Denver cores."""

import functools
import re
from typing import Callable, List, Tuple

from profilers import procfs
from profilers.file_tree import FileTree, Unavailable

#: Endings of the integrated GPU's folder in /sys/class/devfreq (TX1, TX2, Xavier, Orin).
GPUS = ("gpu", "gm20b", "gp10b", "gv11b", "ga10b")
EMC_CLOCKS = (
    "sys/kernel/debug/bpmp/debug/clk/emc/rate",
    "sys/kernel/debug/clk/emc/clk_rate",
    "sys/kernel/debug/clk/override.emc/clk_rate",
)
COMPATIBLE = "proc/device-tree/compatible"
NVMAP = "sys/kernel/debug/nvmap/iovmm/clients"


def is_tegra(tree: FileTree) -> bool:
    """Whether this is a Jetson."""
    return "nvidia,tegra" in tree.first_text(COMPATIBLE)


def gpu_folder(tree: FileTree) -> str:
    """The devfreq folder of the integrated GPU. Raises Unavailable."""
    for folder in tree.glob("sys/class/devfreq/*"):
        if folder.endswith(GPUS):
            return folder
    raise Unavailable("no integrated GPU under /sys/class/devfreq")


def gpu_load(tree: FileTree) -> float:
    """Busy share of the integrated GPU, 0..1; its ``load`` file counts per mille."""
    return tree.number(gpu_folder(tree) + "/device/load") / 1000.0


def gpu_clock(tree: FileTree) -> float:
    """Clock of the integrated GPU in Hz."""
    return float(tree.number(gpu_folder(tree) + "/cur_freq"))


def emc_clock(tree: FileTree) -> float:
    """Clock of the external memory controller in Hz, from debugfs. Raises Unavailable."""
    reason = Unavailable("")
    for name in EMC_CLOCKS:
        try:
            return float(tree.number(name))
        except Unavailable as error:
            reason = error
    raise Unavailable("the memory controller's clock is in debugfs, for root only (%s)" % reason)


def gpu_memory(tree: FileTree) -> float:
    """Bytes that all processes hold in nvmap, the allocator of the GPU. Raises Unavailable."""
    match = re.search(r"^total\s+(\d+)K", tree.text(NVMAP), re.MULTILINE)
    if match is None:
        raise Unavailable("/%s states no total" % NVMAP)
    return float(int(match.group(1)) * procfs.KIB)


def denver_cores(tree: FileTree) -> float:
    """0.0 on a TX2 with its Denver cores switched off: no list of cores has them then."""
    if "tegra186" in tree.first_text(COMPATIBLE):
        return 0.0
    raise Unavailable("this machine has no second cluster of cores")


def candidates(tree: FileTree) -> List[Tuple[str, Callable[[], float]]]:
    """(counter, reader) pairs, see ``profilers.counters``; empty except on Jetsons."""
    if not is_tegra(tree):
        return []
    readers = (
        ("f_gpu", gpu_clock),
        ("u_gpu", gpu_load),
        ("f_emc", emc_clock),
        ("m_gpu", gpu_memory),
        ("c_cp", denver_cores),
    )
    return [(name, functools.partial(read, tree)) for name, read in readers]
