"""The members of a process group agree on NCCL or gloo."""

from typing import Any, List, Sequence

import torch
import torch.distributed as dist

from backends.frameworks.process_group import GroupSettings

#: What a member without a GPU for NCCL tells the others.
NO_GPU = "none"


def agree(settings: GroupSettings, store: Any) -> str:
    """The backend of all members, which tell one another their GPUs through the store.

    That is NCCL where each of them has a GPU of its own, which NCCL requires, else gloo; or the one
    that is asked for. Raises ValueError where NCCL is asked for and cannot be had.
    """
    if settings.backend == "gloo":
        return "gloo"
    store.set("gpu/%d" % settings.rank, gpu_for_nccl(settings.rank))
    gpus = [bytes(store.get("gpu/%d" % rank)).decode() for rank in range(settings.size)]
    hindrance = _hindrance(gpus, settings.rank)
    if settings.backend == "nccl" and hindrance:
        raise ValueError("backend=nccl: %s; leave the option out" % hindrance)
    return "gloo" if hindrance else "nccl"


def gpu_for_nccl(rank: int) -> str:
    """Identifies this member's GPU, by its rank where torch does not know its UUID (before 2.4)."""
    if not (torch.cuda.is_available() and dist.is_nccl_available()):
        return NO_GPU
    return str(getattr(torch.cuda.get_device_properties(0), "uuid", "of rank %d" % rank))


def _hindrance(gpus: Sequence[str], rank: int) -> str:
    """Why these members cannot exchange through NCCL, as the one of this rank tells it; or ''."""
    if gpus[rank] == NO_GPU:
        return "this device has no CUDA, or its torch no NCCL"
    without: List[int] = [other for other, gpu in enumerate(gpus) if gpu == NO_GPU]
    if without:
        return "member %d has no CUDA, or its torch no NCCL" % without[0]
    others = [other for other, gpu in enumerate(gpus) if gpu == gpus[rank] and other != rank]
    if others:
        return "members %d and %d compute on the same GPU, which NCCL refuses" % (rank, others[0])
    if len(set(gpus)) < len(gpus):
        return "two other members compute on the same GPU, which NCCL refuses"
    return ""
