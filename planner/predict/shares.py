"""A member of a sharded run holds its share of the model, and gathers one block of it at a time.

By FSDP2, as ``backends.pytorch.sharded_replica`` uses it: parameters, gradients and what the
optimizer keeps are divided among n members. While a block is computed a member has its weights,
those of the block before in the buffer they were gathered in, its gradients, and these once more as
they are exchanged. What is in no block stays gathered from the beginning of a step to its end.
"""

from typing import NamedTuple

from profilers.records.steps import ModelSize, StepProfile

#: Arrays of a block's size while it is computed, and of what is in no block meanwhile.
OF_BLOCK, OF_REST = 4, 2
#: More devices than anybody has of one kind.
MOST_MEMBERS = 16


class ShardedModel(NamedTuple):
    """What members gather in a step, and reduce to shares.

    blocks: bytes of each block; rest_bytes: of what is in none.
    trained: the part of these bytes that has gradients.
    micro_batch: samples for which all this is done; 0 for all of a step.
    """

    blocks: tuple[float, ...]
    rest_bytes: float
    trained: float
    micro_batch: int

    @classmethod
    def of_step(cls, step: StepProfile) -> "ShardedModel":
        """The model of a timing."""
        size, blocks = step.size, tuple(4.0 * elements for elements in step.size.blocks)
        whole = whole_bytes(size)
        return cls(blocks, whole - sum(blocks), size.parameter_bytes / whole, step.setup.compute.micro_batch)

    def parts(self, batch: int) -> int:
        """Parts in which a batch is computed."""
        return -(-batch // self.micro_batch) if self.micro_batch else 1


def gathered_bytes(size: ModelSize) -> int:
    """The most that a member has of what it gathers, besides its share."""
    blocks_bytes = [4 * elements for elements in size.blocks]
    rest_bytes = whole_bytes(size) - sum(blocks_bytes)
    return max(OF_BLOCK * max(blocks_bytes, default=0) + OF_REST * rest_bytes, OF_BLOCK * rest_bytes)


def whole_bytes(size: ModelSize) -> int:
    """All parameters, frozen ones too."""
    return size.parameter_bytes + size.frozen_bytes


def member_bytes(step: StepProfile, kept: float, members: int) -> float:
    """What one of n members has of weights, gradients and ``kept`` arrays of the optimizer.

    No less than the whole model, which each member builds before it is divided; the first weights
    of a known model are made besides.
    """
    size, built = step.size, 1 if step.setup.job else 2
    share_bytes = ((2 + kept) * size.parameter_bytes + size.frozen_bytes) / members
    return max(share_bytes + gathered_bytes(size), float(built * whole_bytes(size)))


def replica_bytes(size: ModelSize, kept: float) -> float:
    """The same of a member that has all."""
    return (2 + kept) * size.parameter_bytes + size.frozen_bytes


def least_members(step: StepProfile, kept: float, needed_bytes: float, usable_bytes: float) -> int:
    """The fewest devices of which each has room for its share of the model; 0 for no number.

    needed_bytes: of a memory, for a step of the whole model. usable_bytes: what it may take.
    """
    besides = needed_bytes - replica_bytes(step.size, kept)
    counts = range(2, MOST_MEMBERS + 1)
    return next((n for n in counts if besides + member_bytes(step, kept, n) <= usable_bytes), 0)
