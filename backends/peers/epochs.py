"""Epochs of peers: when members change, all meet at a barrier and go on with new ranks.

Between barriers the scheduler hands out steps, as far apart as the sync policy allows. When a
member joins or leaves, or a checkpoint is due, every member is held at the end of a step until all
are there. Then a new epoch begins, or the checkpoint is taken. If other members wait for messages
of a held member, it first makes the steps that they need.

Members that wait for nobody are not held for a checkpoint: each hands over what it has at the end
of its own step. They have the order of their next step before they end one. Else that order would
wait behind what others send to them.
"""

import collections
import math
import time
from typing import Callable, Counter, Dict, NamedTuple, Optional, Set, Tuple

from backends.hosting.step_queue import StepCounter, WorkQueue
from backends.network.mailbox import RUN_OVER
from backends.peers.hand_overs import HandOvers
from backends.protocol.frames import EVALUATE, FINISH, STEP
from backends.strategies.synchronisation import SyncPolicy

#: Seconds between checks whether the connection of a waiting member has ended.
CHECK_INTERVAL_S = 0.2


class PeerWorkItem(NamedTuple):
    """The next task of a member."""

    kind: str  # STEP, EVALUATE, FINISH, GIVE, TAKE or SAVE
    step: int  # steps that the member has made; for an evaluation, steps of all members
    epoch: int  # the epoch in which the task is to be done
    members: Tuple[str, ...]  # the members of that epoch, in the order of ranks
    ordered: bool = False  # whether the member has been told already


class EpochScheduler(WorkQueue):
    """Hands out the steps of all members.

    Members that wait for one another make whole rounds, so that the last may exceed the total.
    on_members: called under the lock with the names of the members when an epoch begins.
    expected: members that the first epoch waits for, up to ``patience_s`` after the first joined.
    host: the member on the coordinator's device.
    by_rounds: whether what a member does at once is a round, of any number of steps.
    """

    def __init__(
        self,
        counter: StepCounter,
        sync_policy: SyncPolicy,
        on_members: Callable[[Tuple[str, ...]], None],
        expected: int = 1,
        patience_s: float = 0.0,
        host: str = "",
        by_rounds: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(counter)
        self._sync_policy = sync_policy
        self._on_members = on_members
        self._members: Tuple[str, ...] = ()  # of the present epoch, in the order of their ranks
        self._expected = expected
        self._patience_s = patience_s
        self._by_rounds = by_rounds
        self._clock = clock
        self.epoch = 0
        self._steps: Dict[str, int] = {}  # or rounds, of all that have joined, also between epochs
        self._goal = math.inf
        self._asking: Set[str] = set()
        self._at_work: Counter[str] = collections.Counter()  # steps that are ordered and not answered
        self._ahead: Dict[str, PeerWorkItem] = {}  # the second of them
        self.hand_overs = HandOvers(host)
        self._changed = self._broken = False
        self._first_joined_s: Optional[float] = None
        self._evaluating: Dict[str, int] = {}  # one member at most, and the steps when it began

    # -- joining and leaving -----------------------------------------------------------------------

    def join(self, name: str, steps: Optional[int] = None) -> None:
        """Add a member.

        steps: that its weights include; None if they are not the run's.
        """
        with self._changing():
            if self._first_joined_s is None:
                self._first_joined_s = self._clock()
            self._steps[name] = steps or 0
            if steps is None:
                self.hand_overs.without_weights.add(name)
            self._changed = True

    def leave(self, name: str) -> None:
        """Remove a member; members that wait for it are interrupted (``required_epoch``)."""
        with self._changing():
            self._steps.pop(name, None)
            self._asking.discard(name)
            self.hand_overs.leave(name)
            for items in (self._at_work, self._ahead, self._evaluating):
                items.pop(name, None)
            if name in self._members and not self.over:
                self.interrupt()

    def interrupt(self) -> None:
        """End the epoch's steps, after one of them could not be completed."""
        with self._changing():
            self._changed = self._broken = True

    @property
    def orphaned(self) -> bool:
        """Whether steps have been made, but no member with their weights is left."""
        return bool(self.epoch and self._counter.made and not self._with_weights)

    def needs(self, name: str) -> bool:
        """Whether a member is the only one with the weights of the steps made."""
        return bool(self._counter.made and self._with_weights == {name})

    @property
    def _with_weights(self) -> Set[str]:
        return set(self._steps) - self.hand_overs.without_weights

    @property
    def required_epoch(self) -> int:
        """The present epoch, the next after an interruption, or RUN_OVER after a stop.

        Waits in earlier ones must end.
        """
        return RUN_OVER if self._stopped else self.epoch + int(self._broken)

    # -- taking work -------------------------------------------------------------------------------

    def take(self, name: str, gone: Callable[[], bool] = lambda: False) -> PeerWorkItem:
        """The next item for a member; blocks while there is none.

        gone: whether the member's connection has ended; it then gets FINISH.
        """
        with self.lock:
            if name in self._ahead:
                return self._ahead.pop(name)
            self._asking.add(name)
            self.lock.notify_all()
            while True:
                kind = FINISH if gone() or self.over else self._next(name)
                if kind is not None:
                    self._asking.discard(name)
                    step = self.done if kind == EVALUATE else self._steps.get(name, 0)
                    return PeerWorkItem(kind, step, self.epoch, self._members)
                self.lock.wait(CHECK_INTERVAL_S)

    def take_ahead(self, name: str) -> Optional[PeerWorkItem]:
        """The step after the one that a member makes, if it may have that already; else None.

        ``take`` returns it again when that one is done.
        """
        with self.lock:
            if self._at_work[name] != 1 or not self._goes_on(name):
                return None
            self._at_work[name] += 1
            self._ahead[name] = PeerWorkItem(STEP, self._steps[name] + 1, self.epoch, self._members, ordered=True)
            return self._ahead[name]

    def _goes_on(self, name: str) -> bool:
        """Whether a member that waits for nobody is to make a step after the one it makes.

        Not shortly before all meet, at the end or for a checkpoint: the others would make the steps
        until then meanwhile, and wait for this one.
        """
        waits = self.waits or self._by_rounds or math.isfinite(self._sync_policy.staleness)
        if waits or self._changed or self._counter.save_due or self.over or self._counter.evaluation_due(False):
            return False
        made = sum(self._steps[other] for other in self._members)
        left = min(self._left, self._counter.until_due - sum(self._at_work.values()))
        return left * self._steps[name] > 2 * made

    def _next(self, name: str) -> Optional[str]:
        if self._changed or (self._counter.save_due and self.waits):
            if self._asking >= set(self._steps) and self._enough_have_joined():
                self._begin_together()
            elif self._broken or name not in self._members or not self._is_waited_for(name):
                return None
        elif not self.hand_overs.awaited:
            self._ask_for_due_save()
        return self.hand_overs.next_of(name, self.waits) or self._training(name)

    def _training(self, name: str) -> Optional[str]:
        """EVALUATE or STEP, if the member may begin one now; else None."""
        if (self.waits and self.hand_overs.unsaved) or name in self.hand_overs.without_weights:
            return None
        if not self._evaluating and self._counter.evaluation_due(self._trained):
            self._evaluating[name] = self.done
            return EVALUATE
        return STEP if self._begin_step(name) else None

    def _enough_have_joined(self) -> bool:
        assert self._first_joined_s is not None
        patient = self._clock() - self._first_joined_s < self._patience_s
        return self.epoch > 0 or len(self._steps) >= self._expected or not patient

    def _is_waited_for(self, name: str) -> bool:
        """Whether others have begun a step for which they need this member's messages."""
        return self.waits and self._steps[name] < max(self._begun(other) for other in self._members)

    def _begun(self, name: str) -> int:
        return self._steps.get(name, 0) + self._at_work[name]

    @property
    def waits(self) -> bool:
        """Whether members wait for one another's messages."""
        return self._sync_policy.waits_for(len(self._members)) > 1

    def _begin_step(self, name: str) -> bool:
        others = [self._steps[other] for other in self._members if other != name]
        if self._steps_left(name) and self._sync_policy.may_begin(self._steps[name], others):
            self._at_work[name] += 1
            return True
        return False

    def _steps_left(self, name: str) -> bool:
        """Whether the run needs another step of a member, or its round needs the member."""
        if self._by_rounds:
            return self._counter.made < self._counter.total or self._is_waited_for(name)
        if self.waits:
            return self._steps[name] < self._goal
        return self._left > 0

    @property
    def _left(self) -> int:
        """Steps that nobody has made or is to make."""
        return self._counter.total - self._counter.made - sum(self._at_work.values())

    # -- beginning an epoch or a checkpoint, with all members at the end of a step -----------------

    def _begin_together(self) -> None:
        if self._changed:
            self.epoch += 1
            self._members = tuple(sorted(self._steps))
            self._on_members(self._members)
            steps = {name: self._steps[name] for name in self._members}
            self.hand_overs.choose_donor(steps, in_step=self._sync_policy.staleness == 0)
            self._steps.update(steps)
        self._ask_for_due_save()
        self._changed = self._broken = False
        self._set_goal()
        self.lock.notify_all()

    def _ask_for_due_save(self) -> None:
        if self._counter.take_due_save():
            self.hand_overs.ask(set(self._members))

    def _set_goal(self) -> None:
        """Set the steps that each member makes in total, where members make whole rounds."""
        if self.waits and not self._by_rounds:
            made = sum(self._steps[name] for name in self._members)
            left = self._counter.total - self._counter.made
            self._goal = int(math.ceil((left + made) / len(self._members)))

    # -- completing work ---------------------------------------------------------------------------

    def complete(self, worker: str, steps: int = 1) -> int:
        with self._changing():
            if worker in self._evaluating:
                self._counter.evaluated = self._evaluating.pop(worker)
            else:
                self._end_step(worker)
                if worker in self._steps:
                    self._steps[worker] += 1
                self._counter.count_steps(steps)
            return self.done

    def abandon(self, worker: str) -> None:
        with self._changing():
            self._end_step(worker)

    def _end_step(self, worker: str) -> None:
        self._at_work[worker] = max(0, self._at_work[worker] - 1)

    def weights_given(self) -> None:
        """Record that the weights for joining members have arrived."""
        with self._changing():
            self.hand_overs.donor = None

    def weights_taken(self, name: str) -> None:
        """Record that a member has received the weights of the run."""
        with self._changing():
            self.hand_overs.without_weights.discard(name)

    def saved(self, name: str) -> None:
        """Record that a member has handed over everything, or never will."""
        with self._changing():
            self.hand_overs.unsaved.discard(name)

    @property
    def _trained(self) -> bool:
        return self._counter.made >= self._counter.total and not any(self._at_work.values())
