"""macOS and FreeBSD tell by sysctl(8) and vm_stat(1) what Linux tells in /proc."""

import functools
import re
from typing import Dict, NamedTuple, Optional, Tuple

from profilers import commands

#: What does not change while a system runs.
FIXED = (
    "hw.memsize", "hw.physmem", "hw.model", "hw.perflevel0.physicalcpu", "hw.optional.arm.FEAT_BF16",
    "machdep.cpu.brand_string", "kern.osproductversion", "kern.bootsessionuuid",
)  # fmt: skip
#: Pages that FreeBSD has free, or can have at once.
FREE_PAGES = ("vm.stats.vm.v_free_count", "vm.stats.vm.v_inactive_count")
PAGE_SIZE = "hw.pagesize"
SWAP = "vm.swapusage"
_MAC_FREE_PAGES = ("Pages free", "Pages speculative", "Pages inactive")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Host(NamedTuple):
    """What ``FIXED`` tells of a machine; None for what it does not.

    board: model of a Mac. performance_cores: the faster ones of an Apple processor.
    """

    board: Optional[str] = None
    processor: Optional[str] = None
    system: Optional[str] = None
    boot_id: Optional[str] = None
    total_bytes: Optional[int] = None
    performance_cores: Optional[int] = None
    has_bf16: bool = False


def parse_sysctl(text: str) -> Dict[str, str]:
    """Parse lines "name: value"."""
    pairs = (line.partition(": ") for line in text.splitlines())
    return {name: value.strip() for name, colon, value in pairs if colon and value.strip()}


def parse_host(values: Dict[str, str]) -> Host:
    """The machine; ``hw.model`` is a Mac's model, and elsewhere the processor's name."""
    brand, model = values.get("machdep.cpu.brand_string"), values.get("hw.model")
    version = values.get("kern.osproductversion")
    return Host(
        board=model if brand else None,
        processor=brand or model,
        system="macOS " + version if version else None,
        boot_id=values.get("kern.bootsessionuuid"),
        total_bytes=_whole(values.get("hw.memsize") or values.get("hw.physmem")),  # a Mac's physmem has 32 bits
        performance_cores=_whole(values.get("hw.perflevel0.physicalcpu")),
        has_bf16=values.get("hw.optional.arm.FEAT_BF16") == "1",
    )


def parse_vm_stat(text: str) -> Optional[int]:
    """Parse what vm_stat of macOS prints into the bytes that a new process can have.

    These are free pages, pages read ahead (which it does not count as free), and inactive ones.
    """
    size = re.search(r"page size of (\d+) bytes", text)
    pages = dict(re.findall(r"^(Pages [a-z ]+): +(\d+)\.$", text, re.MULTILINE))
    if size is None or "Pages free" not in pages:
        return None
    return int(size.group(1)) * sum(int(pages.get(name, 0)) for name in _MAC_FREE_PAGES)


def parse_swap(text: str) -> Optional[float]:
    """Parse the bytes of swap in use, "total = 2048.00M  used = 1063.75M  free = ..."."""
    used = re.search(r"used = ([\d.]+)([KMG])", text)
    return float(used.group(1)) * _UNITS[used.group(2)] if used else None


@functools.lru_cache(maxsize=None)
def host() -> Host:
    """This machine; without facts on Linux."""
    return parse_host(_sysctl(FIXED))


def memory() -> Optional[Tuple[int, int]]:
    """Total and available bytes of main memory; None where these programs do not tell."""
    total_bytes = host().total_bytes
    if total_bytes is None:
        return None
    available_bytes = parse_vm_stat(commands.output(["vm_stat"]))
    if available_bytes is None:
        told = {name: _whole(value) or 0 for name, value in _sysctl(FREE_PAGES + (PAGE_SIZE,)).items()}
        available_bytes = told.get(PAGE_SIZE, 0) * sum(told.get(name, 0) for name in FREE_PAGES)
    return (total_bytes, min(total_bytes, available_bytes)) if available_bytes else None


def swap_bytes() -> Optional[float]:
    """Bytes of swap in use; None where the system does not tell."""
    return parse_swap(_sysctl((SWAP,)).get(SWAP, ""))


def _sysctl(names: Tuple[str, ...]) -> Dict[str, str]:
    return parse_sysctl(commands.output(("sysctl", "-i") + names))  # without those that it does not know


def _whole(text: Optional[str]) -> Optional[int]:
    return int(text) if text is not None and text.isdigit() else None
