"""The life of a member of a run is alike in every role: prepared, told to go, built, at work."""

import contextlib
import time
from typing import Any, Iterator, NamedTuple, Tuple

from backends.agent import files
from backends.frameworks.base import Replica, framework
from backends.protocol.events import Built, Ready
from backends.protocol.member_specs import MemberSpec
from backends.training.compute_clock import clock_of
from backends.training.step_watch import LEAST_LIMITS, StepWatch, first_limit_s, limited
from backends.training.telemetry import TelemetrySender
from backends.training.workload import MemberData, Workload, code_of, member_data, workload


class LiveMember(NamedTuple):
    """A member that may take up its role.

    began_s: when it was told to go, in monotonic seconds; build_s: of its model.
    """

    replica: Replica
    data: MemberData
    telemetry: TelemetrySender
    began_s: float
    build_s: float


@contextlib.contextmanager
def alive(task: Any, member: MemberSpec, heartbeat_s: float) -> Iterator[LiveMember]:
    """Prepare, wait for the go order, and build the model; then the member works within this.

    It tells its readings meanwhile, and ends the agent where a step hangs. heartbeat_s: of the run.
    """
    loaded, data = _prepare(task, member)
    began_s = time.monotonic()
    telemetry = TelemetrySender(task.emit, arrivals=data[0].arrivals, injection=data[0].injection)
    closing, (drawn, test) = contextlib.closing, data
    with closing(drawn.arrivals), closing(drawn), closing(test), telemetry, code_of(member.replica):
        first_s = first_limit_s(member.starting_s)
        with limited("building the model", first_s):
            built = loaded.build()
        task.emit(Built(built.build_s))
        with StepWatch(clock_of(built.replica), LEAST_LIMITS * heartbeat_s, first_s):
            yield LiveMember(built.replica, data, telemetry, began_s, built.build_s)


def _prepare(task: Any, member: MemberSpec) -> Tuple[Workload, MemberData]:
    """Import the framework, load the job and the data, say so, and wait for the go order."""
    with limited("the import of %s" % member.replica.framework):
        framework(member.replica.framework).accelerator()
    loaded = workload(member.replica)
    with code_of(member.replica), limited("reading its data"):
        own = member_data(member, loaded, files.fetch, _claimed)
    note = "" if loaded.brought is None else loaded.brought.note
    task.emit(Ready(own.labels, own.division, loaded.metrics, note))
    task.await_go()
    return loaded, own.data


def _claimed(name: str) -> str:
    """The path of a name in the cache, kept from `planner clean` while this process runs."""
    files.claim(name)
    return files.path(name)
