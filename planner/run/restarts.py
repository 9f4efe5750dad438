"""A member that failed is started again after growing pauses, unless it would fail again."""

from collections.abc import Callable
from dataclasses import dataclass, field

from backends.protocol.events import MemberTelemetry
from planner.agents.call import Event
from planner.agents.client import AgentClient
from planner.errors import AgentError, JobError, PlannerError

#: A member is given up after so many failures in a row without a step, or so many failures to
#: reach its device.
ATTEMPTS = 5
ABSENCES = 40
LONGEST_PAUSE_S = 15.0


@dataclass
class Restarts:
    """Decides for one member whether it is started again, and when.

    new_agent: starts the agent that it is then given to.
    """

    new_agent: Callable[[], AgentClient]
    _stepped: bool = field(default=False, init=False)  # since it was last started
    _ever_stepped: bool = field(default=False, init=False)
    _failures: int = field(default=0, init=False)  # in a row without a step
    _absences: int = field(default=0, init=False)

    def hear(self, event: Event) -> None:
        """Note whether the member has made steps."""
        if isinstance(event, MemberTelemetry):
            self._stepped = event.spent.steps > 0
            self._ever_stepped |= self._stepped

    def pause_s(self, error: PlannerError, reached: bool) -> float | None:
        """Seconds until the next start after this error; None where it is given up.

        reached: whether its device was reached, so that the member itself has failed.
        """
        if reached:
            self._failures, self._absences = (1 if self._stepped else self._failures + 1), 0
            self._stepped = False
        else:
            self._absences += 1
        never_worked = isinstance(error, AgentError) and not self._ever_stepped
        faulty_job = isinstance(error, JobError)  # the user wants to mend it
        if never_worked or faulty_job or self._failures == ATTEMPTS or self._absences == ABSENCES:
            return None
        return min(2.0 ** (self._failures + self._absences), LONGEST_PAUSE_S)
