"""The operator adds these events of a run to those of agents (``backends.protocol.events``)."""

from typing import NamedTuple

from backends.protocol.events import EVENTS, MemberAccount, RunAccount
from planner.run.supervisor import MemberLost, MemberRestarted


class Reaching(NamedTuple):
    """Agents are being started on these devices."""

    devices: tuple[str, ...]


class Sending(NamedTuple):
    """A device is sent its data."""

    bytes: int


class Started(NamedTuple):
    """All members begin. until: as ``StopRule.text``."""

    until: str = ""


class Stopping(NamedTuple):
    """The operator has asked the run to stop."""


class TimeOver(NamedTuple):
    """The time that a run was to last has passed."""


class SlowFetch(NamedTuple):
    """A checkpoint took so long to come that those here are further apart than those written."""

    device: str
    seconds: float


class LogFailed(NamedTuple):
    """The log of a run cannot be written."""

    reason: str


class MemberGivenUp(NamedTuple):
    """A member is not started again."""

    reason: str


class MemberEnded(NamedTuple):
    """A member has ended normally."""

    account: MemberAccount


class RunEnded(NamedTuple):
    """The run has ended, with the account of its host."""

    account: RunAccount


RUN_EVENTS = (
    *EVENTS,
    Reaching,
    Sending,
    Started,
    Stopping,
    TimeOver,
    SlowFetch,
    LogFailed,
    MemberLost,
    MemberRestarted,
    MemberGivenUp,
    MemberEnded,
    RunEnded,
)
