"""What members of a sharded run exchange in a step: blocks of the model, and their gradients."""

from typing import NamedTuple

from backends.profiling.share_memory import whole_bytes
from profilers.records.steps import StepProfile


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
