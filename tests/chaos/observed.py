"""What was seen of a chaos run: plain values, from which the oracle judges."""

from typing import NamedTuple

from tests.chaos.journal import Replay


class Ended(NamedTuple):
    """A command that has ended, and what it kept.

    code: None where it was still running after the limit.
    errors: all that it wrote to standard error.
    made: steps by its result; None without one.
    saved: the step of the checkpoint in the run folder; None without one that can be read.
    named: that of a newer one on a device, whose path the messages name.
    replay: of the journal up to that checkpoint; None where the strategy cannot be replayed.
    """

    code: int | None
    errors: str
    made: int | None
    saved: int | None
    named: int | None
    replay: Replay | None

    @property
    def messages(self) -> list[str]:
        """The lines with which it failed."""
        return [line for line in self.errors.splitlines() if line.startswith("planner: ")]


class Observed(NamedTuple):
    """One run.

    reached: the latest step that was made, by the journal or by what the host told.
    written, carried: steps of checkpoints of the host: the newest, and the newest one that could be
        here by the fault.
    left: processes, files and ports that remained.
    resumed: the run that went on from it; None where there was nothing to go on from.
    injected: whether the fault came before the run's end.
    noticed_s, ended_s: after the fault; None where nothing told of it.
    """

    run: Ended
    reached: int
    written: int
    carried: int
    left: tuple[str, ...]
    resumed: Ended | None
    injected: bool
    noticed_s: float | None
    ended_s: float | None
    seconds: float
