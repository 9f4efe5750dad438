"""This fixture plants recorded trees of /proc and /sys below a temporary root."""

import pytest

from profilers.file_tree import FileTree

A57 = "processor\t: {n}\nBogoMIPS\t: 62.50\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd07\n"
DENVER = "processor\t: {n}\nmodel name\t: ARMv8 Processor\nCPU implementer\t: 0x4e\nCPU part\t: 0x003\n"

MEMINFO = """MemTotal:        8000000 kB
MemFree:          500000 kB
MemAvailable:    6000000 kB
SwapTotal:       4000000 kB
SwapFree:        3999000 kB
HugePages_Total:       0
"""

STAT = """cpu  0 0 0 0 0 0 0 0 0 0
cpu0 {a} 0 0 {b} 0 0 0 0 0 0
cpu1 {c} 0 0 {d} 0 0 0 0 0 0
intr 1 2 3
"""


@pytest.fixture
def plant(tmp_path):
    """plant({path: text}) writes files below a temporary root and gives the FileTree of it."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(text))
        return FileTree(tmp_path)

    return write


@pytest.fixture
def tx2():
    """A TX2 with one A57 and one Denver core online."""
    cpu = "sys/devices/system/cpu/cpu%d/cpufreq/%s"
    gpu = "sys/class/devfreq/17000000.gp10b/"
    return {
        "proc/cpuinfo": A57.format(n=0) + "\n" + DENVER.format(n=1) + "\nHardware\t: quill\n",
        "proc/stat": STAT.format(a=100, b=100, c=0, d=200),
        "proc/meminfo": MEMINFO,
        "proc/device-tree/compatible": "nvidia,p2597-0000+p3310-1000\0nvidia,quill\0nvidia,tegra186\0",
        "proc/device-tree/model": "quill\0",
        cpu % (0, "related_cpus"): "0 3 4 5",
        cpu % (0, "scaling_cur_freq"): "2035200",
        cpu % (1, "related_cpus"): "1 2",
        cpu % (1, "scaling_cur_freq"): "345600",
        gpu + "cur_freq": "1300500000",
        gpu + "device/load": "530",
        "sys/kernel/debug/bpmp/debug/clk/emc/rate": "1866000000",
        "sys/kernel/debug/nvmap/iovmm/clients": "CLIENT PROCESS PID SIZE\nuser python 7 9K\ntotal  2048K\n",
    }
