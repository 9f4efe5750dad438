"""Why a training run cannot go on: its host has failed, or members that it needs are given up."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from backends.frameworks.process_group import BROKEN
from backends.protocol.events import Dropped, Joined, Left, RunAccount
from backends.training.stopping import STREAMS_ENDED
from planner.agents.call import Event
from planner.errors import DeviceLostError, JobError, PlannerError

#: Longest wait for the cause, once a member says that its exchange broke off.
CAUSE_S = 5.0
#: How a member says that the server ended their connection (framing.WireError).
CLOSED = "closed the connection"


class Supervised(Protocol):
    """A member; ``error``: why it is not started again."""

    @property
    def error(self) -> PlannerError | None: ...


class RunFailure:
    """Judges the failures of a run by its events and by the errors of its host and its members.

    device: that of the host.
    needs_all: whether the run ends with the first member that is lost.
    """

    def __init__(
        self,
        device: str,
        members: Mapping[str, Supervised],
        needs_all: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._device = device
        self._members = members
        self._needs_all = needs_all
        self._clock = clock
        self._cause_by_s: float | None = None
        self._left: dict[str, Left] = {}  # members at whom no more samples arrive
        self._dropped: dict[str, Dropped] = {}  # why the host has dropped members

    def hear(self, event: Event) -> None:
        """An event of the run."""
        if isinstance(event, Joined):
            self._left.pop(event.member, None)
        elif isinstance(event, Left):
            self._left[event.member] = event
        elif isinstance(event, Dropped) and event.member in self._members:  # the host may name whom it likes
            self._dropped[event.member] = event

    def of_member(self, name: str) -> str | None:
        """Why a member is given up: the host's reason, where that closed the connection."""
        error = self._members[name].error
        if error is None:
            return None
        dropped = name in self._dropped and str(error).endswith(CLOSED)
        return f"{name}: {self._dropped[name].reason}" if dropped else str(error)

    def of_streams(self, account: RunAccount) -> str | None:
        """Why a run failed whose samples arrive no more: it had none, or a source is gone."""
        if account.reason != STREAMS_ENDED:
            return None
        made = sum(worker.steps for worker in account.workers.values())
        faults = [left for left in self._left.values() if left.fault or not made]
        return "; ".join(f"{left.member}: {left.reason}" for left in faults) or None

    def reason(self, host_error: PlannerError | None) -> str | None:
        """Why the run has failed; None if it has not, or while the cause is not yet clear.

        host_error: what its host failed with. The run also ends, though others may work, where the
        user's own code has failed, or gives another model on a device.
        """
        failures = {name: reason for name in self._members if (reason := self.of_member(name)) is not None}
        faulty = [reason for name, reason in failures.items() if isinstance(self._members[name].error, JobError)]
        if self._needs_all:
            of_host = [] if host_error is None else [str(host_error)]
            return self._cause([*of_host, *faulty, *failures.values()])
        if isinstance(host_error, DeviceLostError):
            return f"the server on {self._device} is lost: {host_error}"
        if host_error is not None:
            return str(host_error)
        unfit = [f"{name}: {each.reason}" for name, each in self._dropped.items() if each.unfit]
        if unfit or faulty:
            return [*unfit, *faulty][0]
        nobody_works = failures and len(failures) + len(self._left) == len(self._members)
        return "; ".join(failures.values()) if nobody_works else None

    def _cause(self, reasons: Sequence[str]) -> str | None:
        """The reason that explains the others.

        When a member is lost, the others report that their exchange broke off, often before its own
        end is known.
        """
        if not reasons:
            return None
        self._cause_by_s = self._cause_by_s or self._clock() + CAUSE_S
        causes = [reason for reason in reasons if BROKEN not in reason]
        return [*causes, *reasons][0] if causes or self._clock() > self._cause_by_s else None
