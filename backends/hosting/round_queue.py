"""A round queue hands out rounds, each of which is a step of every rank."""

from backends.hosting.step_queue import RunProgress, StepQueue
from backends.protocol.frames import STEP


class RoundQueue(StepQueue):
    """Hands out rounds, each of which counts as a step of every member.

    The last round may exceed the total.
    members: those whose gradients count.
    checkpoint_due: whether a checkpoint is due after the round that was completed last.
    diverged: whether the weights are of no use, as all ranks have agreed.
    """

    def __init__(self, progress: RunProgress, members: int) -> None:
        super().__init__(progress.total, progress.made)
        self._progress = progress
        self.members = members
        self.checkpoint_due = False
        self.diverged = False

    @property
    def finished(self) -> bool:
        return super().finished and not self.diverged

    def complete(self, worker: str) -> int:
        with self._changing():
            item = self._held.pop(worker)
            if item.kind == STEP:
                self.checkpoint_due = self._progress.count_steps(self.members)
            else:
                self._progress.evaluated = item.step
            return self.done
