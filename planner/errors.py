"""Errors of commands form one tree; each message names the thing, the value and the remedy."""

import difflib
from collections.abc import Iterable

#: What helps where a file or folder of this machine cannot be written, on a full disk say.
MAKE_ROOM = "make room or write access there, or choose another folder"


class PlannerError(Exception):
    """Ends a command with one line on screen and exit code 1."""


class FleetError(PlannerError):
    """The fleet file is wrong; the message lists each mistake on a line."""


class RemoteError(PlannerError):
    """A device cannot be reached or used."""


class HostKeyError(RemoteError):
    """The host key is unknown or differs from the one on record."""


class LoginError(RemoteError):
    """The device refused the login."""


class AgentError(RemoteError):
    """Something failed on the device; ``remote_traceback`` holds its traceback, for the log."""

    def __init__(self, message: str, remote_traceback: str = "") -> None:
        super().__init__(message)
        self.remote_traceback = remote_traceback


class JobError(AgentError):
    """The user's own code failed on a device; the message names its file and line."""


class DeviceLostError(RemoteError):
    """The connection to a device, or its agent, ended before the work did."""


class RecordError(PlannerError):
    """A file written by an earlier command is missing, truncated or of another schema."""


class PlanError(PlannerError):
    """No cluster can be chosen from this profile with these options."""


class AuditError(PlannerError):
    """What was measured cannot be judged by this profile."""


class ProjectError(PlannerError):
    """The files of a user's project cannot be sent to devices."""


class RunError(PlannerError):
    """A training run ended before its last step."""


class PowerError(PlannerError):
    """A table of measurements or a power model cannot be used."""


class ExportError(PlannerError):
    """A trained model cannot be written in this format or to this place."""


class TrackerError(PlannerError):
    """The figures of a run cannot be written for other programs."""


class InterruptedRunError(RunError):
    """The operator stopped the run; it can be resumed."""


def suggest(word: str, known: Iterable[str]) -> str:
    """A remedy for a word that is not among those known: the nearest one, and all."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1)
    listed = f"known: {', '.join(names)}"
    return f'did you mean "{near[0]}"? ({listed})' if near else listed
