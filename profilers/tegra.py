"""Counters that only a Jetson has: GPU load and clock, memory controller, GPU memory, Denver cores."""

import functools
import re
from typing import Callable, List, Tuple

from profilers import procfs
from profilers.file_tree import FileTree, Unavailable

#: The integrated GPU's folder below /sys/class/devfreq ends in one of these (TX1, TX2, Xavier, Orin).
GPUS = ("gpu", "gm20b", "gp10b", "gv11b", "ga10b")
EMC_CLOCKS = (
    "sys/kernel/debug/bpmp/debug/clk/emc/rate",
    "sys/kernel/debug/clk/emc/clk_rate",
    "sys/kernel/debug/clk/override.emc/clk_rate",
)
NVMAP = "sys/kernel/debug/nvmap/iovmm/clients"


def is_tegra(tree: FileTree) -> bool:
    return "nvidia,tegra" in compatible(tree)


def compatible(tree: FileTree) -> str:
    """What the device tree says the machine is compatible with; "" where there is none."""
    try:
        return tree.text("proc/device-tree/compatible")
    except Unavailable:
        return ""


def gpu_folder(tree: FileTree) -> str:
    """The integrated GPU's devfreq folder. Raises Unavailable."""
    for folder in tree.glob("sys/class/devfreq/*"):
        if folder.endswith(GPUS):
            return folder
    raise Unavailable("no integrated GPU under /sys/class/devfreq")


def gpu_load(tree: FileTree) -> float:
    """Busy share of the integrated GPU (its ``load`` file counts per mille)."""
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
    """Bytes that all processes hold through nvmap, the integrated GPU's allocator. Raises Unavailable."""
    match = re.search(r"^total\s+(\d+)K", tree.text(NVMAP), re.MULTILINE)
    if match is None:
        raise Unavailable("/%s states no total" % NVMAP)
    return float(int(match.group(1)) * procfs.KIB)


def denver_cores(tree: FileTree) -> float:
    """0.0 on a TX2 whose Denver cores are switched off; they are then in no list of cores."""
    if "tegra186" in compatible(tree):
        return 0.0
    raise Unavailable("this machine has no second cluster of cores")


def candidates(tree: FileTree) -> List[Tuple[str, Callable[[], float]]]:
    """(counter, reader) pairs; see ``profilers.counters`` for their meanings. Empty off Jetsons."""
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
