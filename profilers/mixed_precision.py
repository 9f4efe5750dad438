"""Which mixed precisions a device computes fast enough to be worth asking for.

bfloat16: processors with AMX or AVX-512, Apple's from M2 on, GPUs from compute capability 8.0 on.
float16: GPUs from compute capability 7.0 on, the first with tensor cores (NVIDIA, CUDA C++
Programming Guide).
"""

from typing import Optional, Tuple

from profilers import procfs, tegra
from profilers.file_tree import FileTree, Unavailable
from profilers.sensors import nvml

FP32, BF16, FP16 = "fp32", "bf16", "fp16"
PRECISIONS = (FP32, BF16, FP16)
#: What a device must have for a precision, in words.
NEEDS = {
    BF16: "AMX or AVX-512, an Apple processor from M2 on, or a GPU of compute capability 8.0 or later",
    FP16: "a GPU of compute capability 7.0 or later",
}
#: Flags of /proc/cpuinfo, of which one is enough.
BF16_FLAGS = frozenset(("amx_bf16", "avx512_bf16", "avx512f"))
BF16_CAPABILITY, FP16_CAPABILITY = (8, 0), (7, 0)
#: Compute capability of the integrated GPU, by the chip (TX1, TX2, Xavier, Orin).
TEGRA_CAPABILITIES = {"tegra210": (5, 3), "tegra186": (6, 2), "tegra194": (7, 2), "tegra234": (8, 7)}


def supported(tree: FileTree, is_apple_bf16: bool = False) -> Tuple[str, ...]:
    """The mixed precisions of a device; empty for one that has float32 only.

    is_apple_bf16: whether this is an Apple processor with bfloat16.
    """
    capability = compute_capability(tree) or (0, 0)
    found = []
    if is_apple_bf16 or has_bf16_flags(tree.first_text("proc/cpuinfo")) or capability >= BF16_CAPABILITY:
        found.append(BF16)
    if capability >= FP16_CAPABILITY:
        found.append(FP16)
    return tuple(found)


def has_bf16_flags(cpuinfo: str) -> bool:
    """Whether the processor of a /proc/cpuinfo has AMX or AVX-512."""
    return any(BF16_FLAGS & set(core.get("flags", "").split()) for core in procfs.parse_cpuinfo(cpuinfo))


def compute_capability(tree: FileTree) -> Optional[Tuple[int, int]]:
    """(major, minor) of the first GPU, the integrated one of a Jetson included; None if unknown."""
    try:
        return nvml.gpus(tree)[0].compute_capability()
    except Unavailable:
        pass
    board = tree.first_text(tegra.COMPATIBLE)
    return next((found for chip, found in TEGRA_CAPABILITIES.items() if chip in board), None)
