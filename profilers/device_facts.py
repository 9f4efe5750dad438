"""This module collects the facts of a device.

Each fact comes from a command or a file, and a pure function parses it.
"""

import importlib
import importlib.util
import os
import platform
import re
import shutil
from typing import Any, Dict, Iterable, Optional, Sequence, Tuple

from profilers import bsd, commands, cpu_quota, mixed_precision, process_memory, procfs, sensors, tegra
from profilers.file_tree import FileTree, Unavailable
from profilers.records.device import Facts, HostMemory, Processor
from profilers.sensors import nvml


def collect(frameworks: Iterable[str], root: str = "/") -> Facts:
    """Collect all facts; an unknown one is None or empty. No framework is imported.

    frameworks: names of modules, such as ``torch``.
    root: of a recorded /proc and /sys. PLANNER_SYSFS_ROOT replaces "/" for memory and sensors.
    """
    tree = FileTree(root)
    return Facts(
        hostname=platform.node(),
        board=board(tree),
        system=system(tree),
        machine=platform.machine(),
        python=platform.python_version(),
        processor=Processor(processor(tree), online_cores(), cpu_quota.usable_cores(root)),
        memory=memory(FileTree() if tree.is_own else tree, FileTree(root)),
        disk_free_bytes=disk_free(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~")),
        frameworks={name: framework(name) for name in frameworks},
        gpus=gpus(tree),
        iperf3=parse_iperf3(commands.output(["iperf3", "--version"])),
        sensors=tuple(sensor.name for sensor in sensors.discover(None if tree.is_own else root).sensors),
        precisions=precisions(tree),
        boot_id=tree.first_text("proc/sys/kernel/random/boot_id") or _bsd(tree).boot_id,
    )


def parse_os_release(text: str) -> Optional[str]:
    """Parse the PRETTY_NAME of /etc/os-release."""
    match = re.search(r"^PRETTY_NAME=[\"']?(.*?)[\"']?$", text, re.MULTILINE)
    return match.group(1) if match else None


def parse_iperf3(text: str) -> Optional[str]:
    """Parse the version that ``iperf3 --version`` prints."""
    match = re.match(r"iperf (\d\S*)", text)
    return match.group(1) if match else None


def parse_processor(text: str) -> Optional[str]:
    """Parse the processor's name in /proc/cpuinfo; on ARM the designs, as implementer/part."""
    online = procfs.parse_cpuinfo(text)
    names = {core.get("model name") or "%s/%s" % (core.get("CPU implementer"), core.get("CPU part")) for core in online}
    return ", ".join(sorted(names)) or None


def parse_distribution(name: str, files: Iterable[str]) -> Optional[str]:
    """The version of a package, from the names of the files beside it.

    Both ``tensorflow_cpu-2.6.2.dist-info`` and ``tensorflow-1.15-py3.6.egg-info`` are tensorflow.
    """
    variants = r"(?:[-_](?:cpu|gpu|intel|macos))?"
    pattern = re.compile(re.escape(name) + variants + r"-(\d[^-]*)(?:-.*)?\.(?:dist|egg)-info")
    versions = [match.group(1) for match in map(pattern.fullmatch, sorted(files)) if match]
    return versions[-1] if versions else None


def board(tree: FileTree) -> Optional[str]:
    """The device tree's model (Jetsons), a PC's product name in its firmware, or a Mac's model."""
    return tree.first_text("proc/device-tree/model", "sys/class/dmi/id/product_name") or _bsd(tree).board


def processor(tree: FileTree) -> Optional[str]:
    """The processor's name; None where it is unknown."""
    return parse_processor(tree.first_text("proc/cpuinfo")) or _bsd(tree).processor


def system(tree: FileTree) -> str:
    """Distribution and kernel."""
    name = parse_os_release(tree.first_text("etc/os-release", "usr/lib/os-release"))
    name = name or _bsd(tree).system or "unknown distribution"
    return "%s, %s %s" % (name, platform.system(), platform.release())


def precisions(tree: FileTree) -> Tuple[str, ...]:
    """The mixed ones that it computes fast."""
    return mixed_precision.supported(tree, _bsd(tree).has_bf16)


def memory(tree: FileTree, groups: FileTree) -> HostMemory:
    """Total and available bytes of main memory.

    groups: the tree with this process's control groups, whose limits count as well.
    """
    rows = procfs.parse_meminfo(tree.first_text("proc/meminfo"))
    if "MemTotal" in rows and "MemAvailable" in rows:
        total, available = rows["MemTotal"], rows["MemAvailable"]
    else:
        total, available = (bsd.memory() if tree.is_own else None) or _memory_by_posix()
    limit = process_memory.limit(groups)
    if limit is not None:
        total, available = min(total, limit.most_bytes), min(available, limit.left_bytes)
    return HostMemory(total, min(total, available))


def _memory_by_posix() -> Tuple[int, int]:
    """Total bytes and free ones, which not every system tells; then all count as such."""
    page, pages = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
    free = os.sysconf("SC_AVPHYS_PAGES") if "SC_AVPHYS_PAGES" in os.sysconf_names else pages
    return page * pages, page * free


def _bsd(tree: FileTree) -> bsd.Host:
    """Facts of this machine where Linux's files do not tell them; none of a recorded one."""
    return bsd.host() if tree.is_own else bsd.Host()


def online_cores() -> int:
    """Cores of the machine; a container may show fewer of them than its processes may use."""
    return max(os.cpu_count() or 1, cpu_quota.affinity())


def disk_free(folder: str) -> int:
    """Bytes that a user may still write in a folder, or in its nearest parent that exists."""
    folder = os.path.abspath(folder)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return shutil.disk_usage(folder).free


def framework(name: str) -> Dict[str, Any]:
    """{version, accelerator: None, device: None} of a framework, not imported, or {error}."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError) as error:
        return {"error": "%s cannot be looked up: %s" % (name, error)}
    if spec is None or spec.origin is None:
        return {"error": "%s is not installed for this Python" % name}
    beside = os.path.dirname(os.path.dirname(spec.origin))
    return {"version": parse_distribution(name, os.listdir(beside)), "accelerator": None, "device": None}


def gpus(tree: FileTree) -> Tuple[str, ...]:
    """Names of the NVIDIA GPUs, the integrated one of a Jetson included."""
    try:
        names = tuple(gpu.name() for gpu in nvml.gpus(tree))
    except Unavailable:
        names = ()
    if names or not tegra.is_tegra(tree):
        return names
    try:
        return ("integrated " + os.path.basename(tegra.gpu_folder(tree)),)
    except Unavailable:
        return ()


def package_versions(names: Sequence[str]) -> Dict[str, Optional[str]]:
    """The version of each package by its name on the package index; None where it is absent."""
    return {name: _version(name) for name in names}


def _version(name: str) -> Optional[str]:
    try:
        metadata: Any = importlib.import_module("importlib.metadata")
    except ImportError:  # before Python 3.8
        return _by_setuptools(name)
    try:
        return str(metadata.version(name))
    except metadata.PackageNotFoundError:
        return None


def _by_setuptools(name: str) -> Optional[str]:
    try:
        resources: Any = importlib.import_module("pkg_resources")
    except ImportError:
        return None
    try:
        return str(resources.get_distribution(name).version)
    except (resources.DistributionNotFound, resources.RequirementParseError):
        return None
