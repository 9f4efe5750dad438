"""A device is a rank of a run whose framework exchanges the gradients.

The rank works in a thread of its own: one that waits in an exchange cannot be interrupted. When
the order fails because another rank is lost, that thread stays until the operator ends the agent.
"""

import contextlib
import queue
import threading
from typing import Any, Callable, Iterator, List, Sequence, Tuple, Union

from backends.agent.member_life import alive
from backends.frameworks.base import framework
from backends.frameworks.process_group import GroupError, GroupSettings
from backends.hosting.rank import Rank
from backends.hosting.sharded_rank import ShardedRank
from backends.hosting.silent_members import RankHeartbeats
from backends.network import framing
from backends.protocol.events import Listening, MemberAccount, RunAccount, TimeSpent
from backends.training.run_orders import RunRank
from profilers.addresses_and_ports import interface_with

Ended = Tuple[RunAccount, TimeSpent]


def run_rank(task: Any, order: RunRank) -> Union[RunAccount, MemberAccount]:
    """Be a rank; the first gives the account of the run, the others their own.

    The first emits the port of its store at once, so that all can import their frameworks together.
    Raises WireError where another rank is lost, ValueError where this device cannot be a rank.
    """
    place = order.names.index(order.member.name)
    interface = interface_with(order.address)
    listener, port = None, order.store_port
    if place == 0:
        listener = framing.listen(order.address)
        port = listener.getsockname()[1]
        task.emit(Listening(port))
    backend = framework(order.member.replica.framework)
    backend.require_process_group()
    engine = order.spec.run.engine
    settings = GroupSettings(
        place, len(order.names), interface, order.store_address, port, order.spec.heartbeat_s, order.wait_s,
        engine.backend, engine.hook, engine.rank, engine.start, engine.is_sharded,
    )  # fmt: skip
    kind = ShardedRank if engine.is_sharded else Rank
    spec = order.member._replace(replica=order.member.replica._replace(is_sharded=engine.is_sharded))
    with alive(task, spec, order.spec.heartbeat_s) as member:
        batches, test = member.data
        ranks: List[Rank] = []  # this one, when it is there

        def work(on_lost: Callable[[str], None]) -> Ended:
            group = backend.process_group(settings, listener)
            heartbeats = RankHeartbeats(group, order.names, order.spec.heartbeat_s, on_lost)
            try:
                rank = kind(order.spec, member.replica, group, order.names, batches, task.emit, on_end=heartbeats.close)
                ranks.append(rank)
                return rank.train(test, task.stopping.is_set, member.telemetry.on_step, member.began_s), rank.spent
            finally:
                heartbeats.close()

        with _saved_on_failure(ranks):
            account, spent = _until_lost(work)
    return account if place == 0 else MemberAccount(spent, member.build_s, {})


@contextlib.contextmanager
def _saved_on_failure(ranks: Sequence[Rank]) -> Iterator[None]:
    """Save what is trained where the run ends with an error, also while its thread is stuck."""
    try:
        yield
    except BaseException:
        for rank in ranks:
            rank.save_after_failure()
        raise


def _until_lost(work: Callable[[Callable[[str], None]], Ended]) -> Ended:
    """What ``work`` returns or raises, or WireError as soon as another rank is lost."""
    ends: "queue.Queue[Any]" = queue.Queue()

    def on_lost(reason: str) -> None:
        ends.put(framing.WireError(reason))

    def run() -> None:
        try:
            ends.put(work(on_lost))
        except GroupError as error:
            ends.put(framing.WireError(str(error)))
        except BaseException as error:  # noqa: BLE001 - it is raised by the thread that waits
            ends.put(error)

    threading.Thread(target=run, daemon=True).start()
    end = ends.get()
    if isinstance(end, BaseException):
        raise end
    result: Ended = end
    return result
