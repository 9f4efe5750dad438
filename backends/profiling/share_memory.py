"""A member of a sharded run holds its share of the model, and gathers one block of it at a time.

By FSDP2, as ``backends.pytorch.sharded_replica`` uses it: parameters, gradients and what the
optimizer keeps are divided among n members. While a block is computed a member has its weights,
those of the block before in the buffer they were gathered in, its gradients, and these once more as
they are exchanged. What is in no block stays gathered from the beginning of a step to its end.
"""

from profilers.records.steps import ModelSize

#: Arrays of a block's size while it is computed, and of what is in no block meanwhile.
OF_BLOCK, OF_REST = 4, 2


def gathered_bytes(size: ModelSize) -> int:
    """The most that a member has of what it gathers, besides its share."""
    blocks_bytes = [4 * elements for elements in size.blocks]
    rest_bytes = whole_bytes(size) - sum(blocks_bytes)
    return max(OF_BLOCK * max(blocks_bytes, default=0) + OF_REST * rest_bytes, OF_BLOCK * rest_bytes)


def whole_bytes(size: ModelSize) -> int:
    """All parameters, frozen ones too."""
    return size.parameter_bytes + size.frozen_bytes


def member_bytes(size: ModelSize, kept: int, members: int, built: int = 1) -> float:
    """What one of n members has of weights, gradients and ``kept`` arrays of the optimizer.

    No less than the whole model, which each member builds before it is divided, ``built`` times.
    """
    share_bytes = ((2 + kept) * size.parameter_bytes + size.frozen_bytes) / members
    return max(share_bytes + gathered_bytes(size), float(built * whole_bytes(size)))


def replica_bytes(size: ModelSize, kept: int) -> int:
    """The same of a member that has all."""
    return (2 + kept) * size.parameter_bytes + size.frozen_bytes
