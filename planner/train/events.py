"""The operator notes these events of a run beside those that agents tell (``backends.protocol.events``)."""

from typing import NamedTuple

from backends.protocol.events import EVENTS, MemberAccount, RunAccount


class Reaching(NamedTuple):
    """Agents are being started on these devices."""

    devices: tuple[str, ...]


class Sending(NamedTuple):
    """A device gets so many bytes of data."""

    bytes: int


class Started(NamedTuple):
    """All members were told to begin."""


class Stopping(NamedTuple):
    """The operator has asked the run to stop."""


class TimeOver(NamedTuple):
    """A run for some time has lasted as long."""


class LogFailed(NamedTuple):
    """The log of a run cannot be written."""

    reason: str


class MemberLost(NamedTuple):
    """A member's order has failed, or its device is lost; it is started again."""

    reason: str


class MemberGivenUp(NamedTuple):
    """A member is not started again."""

    reason: str


class MemberEnded(NamedTuple):
    """A member has done its part."""

    account: MemberAccount


class RunEnded(NamedTuple):
    """The host of a run has given its account."""

    account: RunAccount


RUN_EVENTS = (
    *EVENTS,
    Reaching,
    Sending,
    Started,
    Stopping,
    TimeOver,
    LogFailed,
    MemberLost,
    MemberGivenUp,
    MemberEnded,
    RunEnded,
)
