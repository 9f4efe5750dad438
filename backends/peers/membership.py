"""Who among peers does what next: steps, evaluations, and the moments at which all must agree on who is there.

All members train at their own pace as far as their gate lets them. When somebody has come or gone, or a checkpoint is
due, everyone is held at the end of a step, until all are; then a new epoch begins, with new ranks, or all are saved.
One for whose messages of a step others may wait, because they have begun it, is let go that far first.
"""

import math
import time
from typing import Callable, Dict, NamedTuple, Optional, Set, Tuple

from backends.strategies.synchronisation import SyncPolicy
from backends.training.step_queue import EVALUATE, FINISH, STEP, RunProgress, WorkQueue

#: To give one's weights for those who come; to take them; to hand over everything for a checkpoint.
GIVE, TAKE, SAVE = "give", "take", "save"


class PeerWorkItem(NamedTuple):
    """What a member is to do; ``step``: how many it has made, or all members, if it is to evaluate."""

    kind: str
    step: int
    epoch: int
    members: Tuple[str, ...]


class MembershipScheduler(WorkQueue):
    """Hands out ``total`` steps of all members together; rounds of members who wait for one another are made whole.

    ``expected``: how many members the first epoch waits for, no longer than ``patience_s`` after the first has come.
    ``done``, ``evaluated``: where a resumed run goes on. ``host``: the member beside the conductor, whose weights cost
    no link anything, and who is therefore saved first.
    """

    def __init__(
        self,
        total: int,
        gate: SyncPolicy,
        expected: int = 1,
        patience_s: float = 0.0,
        done: int = 0,
        evaluated: int = 0,
        evaluate_every: int = 0,
        save_every: int = 0,
        host: str = "",
    ) -> None:
        super().__init__(RunProgress(total, done, evaluated, evaluate_every, save_every))
        self._gate = gate
        self._expected = expected
        self._patience_s = patience_s
        self._host = host
        self._epoch = 0
        self._members: Tuple[str, ...] = ()
        self._clocks: Dict[str, int] = {}
        self._goal = math.inf
        self._asking: Set[str] = set()
        self._at_work: Set[str] = set()
        self._fresh: Set[str] = set()
        self._changed = self._broken = False
        self._began: Optional[float] = None
        self._donor: Optional[str] = None
        self._evaluating: Dict[str, int] = {}  # one at most, and the steps done when it began
        self._save_due = False
        self._unsaved: Set[str] = set()

    # -- coming and going --------------------------------------------------------------------------

    def join(self, name: str, clock: Optional[int] = None) -> None:
        """One comes; clock: the steps it had made when its weights were saved, None where it has none of the run's."""
        with self.lock:
            self._began = self._began or time.monotonic()
            self._clocks[name] = clock or 0
            if clock is None:
                self._fresh.add(name)
            self._changed = True
            self.lock.notify_all()

    def leave(self, name: str) -> None:
        """One is gone; those who wait for it are to be interrupted (see ``call``)."""
        with self.lock:
            self._clocks.pop(name, None)
            for names in (self._fresh, self._asking, self._at_work, self._unsaved):
                names.discard(name)
            self._evaluating.pop(name, None)
            if name in self._members and not self.over:
                self.interrupted()
            self.lock.notify_all()

    def interrupted(self) -> None:
        """A step could not be ended: nobody ends one in this epoch any more."""
        with self.lock:
            self._changed = self._broken = True
            self.lock.notify_all()

    @property
    def orphaned(self) -> bool:
        """Whether steps have been made, and nobody is left who has them."""
        return bool(self._epoch and self._course.made and not set(self._clocks) - self._fresh)

    @property
    def call(self) -> int:
        """The epoch that there is, or must be next: who waits in an earlier one waits in vain."""
        return self._epoch + int(self._broken or self._stopped)

    # -- asking ------------------------------------------------------------------------------------

    def ask(self, name: str, gone: Callable[[], bool] = lambda: False) -> PeerWorkItem:
        """The next thing to do for one who has joined; waits as long as that is nothing."""
        with self.lock:
            self._asking.add(name)
            self.lock.notify_all()
            while True:
                kind = FINISH if gone() or self.over else self._next(name)
                if kind is not None:
                    self._asking.discard(name)
                    step = self.done if kind == EVALUATE else self._clocks.get(name, 0)
                    return PeerWorkItem(kind, step, self._epoch, self._members)
                self.lock.wait(0.2)

    def _next(self, name: str) -> Optional[str]:
        if self._changed or self._save_due:
            if self._asking >= set(self._clocks) and self._enough_have_come():
                self._meet()
            elif self._broken or name not in self._members or not self._is_waited_for(name):
                return None
        if name in self._unsaved and (name == self._host or self._host not in self._unsaved):
            return SAVE
        if self._donor == name:
            return GIVE
        if name in self._fresh:
            return TAKE if self._donor is None else None
        if self._unsaved:
            return None
        if not self._evaluating and self._course.evaluation_due(self._trained):
            self._evaluating[name] = self.done
            return EVALUATE
        return STEP if self._may_begin(name) else None

    def _enough_have_come(self) -> bool:
        assert self._began is not None
        patient = time.monotonic() - self._began < self._patience_s
        return self._epoch > 0 or len(self._clocks) >= self._expected or not patient

    def _is_waited_for(self, name: str) -> bool:
        """Whether others have begun a step for which they wait for this member's messages."""
        return self._waits and self._clocks[name] < max(self._begun(other) for other in self._members)

    def _begun(self, name: str) -> int:
        return self._clocks.get(name, 0) + int(name in self._at_work)

    @property
    def _waits(self) -> bool:
        return self._gate.waits_for(len(self._members)) > 1

    def _meet(self) -> None:
        """All are at the end of a step: the new epoch, or the checkpoint, begins."""
        if self._changed:
            self._epoch += 1
            self._members = tuple(sorted(self._clocks))
            self._bring_up()
        if self._save_due:
            self._unsaved = set(self._members) - self._fresh
        self._changed = self._broken = self._save_due = False
        self._set_goal()
        self.lock.notify_all()

    def _bring_up(self) -> None:
        """Who has nothing of the run takes the weights of the one who is furthest; so does, where all keep in step, who
        was interrupted before the step that another has ended."""
        known = [name for name in self._members if name not in self._fresh] or [self._members[0]]
        furthest = max(known, key=lambda name: (self._clocks[name], name))
        self._fresh.discard(furthest)
        if self._gate.staleness == 0:
            self._fresh.update(name for name in known if self._clocks[name] < self._clocks[furthest])
        pace = self._clocks[furthest] if self._gate.staleness == 0 else min(self._clocks[name] for name in known)
        for name in self._fresh:
            self._clocks[name] = pace
        self._donor = furthest if self._fresh else None

    def _set_goal(self) -> None:
        clocks = [self._clocks[name] for name in self._members]
        if self._waits:
            self._goal = int(math.ceil((self._course.total - self._course.made + sum(clocks)) / len(clocks)))

    def _may_begin(self, name: str) -> bool:
        others = [self._clocks[other] for other in self._members if other != name]
        at_most = self._course.total - len(self._at_work)
        left = self._clocks[name] < self._goal if self._waits else self._course.made < at_most
        if left and self._gate.may_begin(self._clocks[name], others):
            self._at_work.add(name)
            return True
        return False

    # -- what was done -----------------------------------------------------------------------------

    def complete(self, name: str) -> None:
        """What it was told to do is done: a step, or an evaluation."""
        with self.lock:
            if name in self._evaluating:
                self._course.evaluated = self._evaluating.pop(name)
            else:
                self._at_work.discard(name)
                if name in self._clocks:
                    self._clocks[name] += 1
                self._save_due |= self._course.step()
            self.lock.notify_all()

    def abandon(self, name: str) -> None:
        """A step was not ended."""
        with self.lock:
            self._at_work.discard(name)
            self.lock.notify_all()

    def gave(self) -> None:
        """The weights for those who come are there."""
        with self.lock:
            self._donor = None
            self.lock.notify_all()

    def took(self, name: str) -> None:
        """One has the weights of the run."""
        with self.lock:
            self._fresh.discard(name)
            self.lock.notify_all()

    def saved(self, name: str) -> bool:
        """One has handed over everything; whether all have."""
        with self.lock:
            self._unsaved.discard(name)
            self.lock.notify_all()
            return not self._unsaved

    # -- how far it is -----------------------------------------------------------------------------

    @property
    def _trained(self) -> bool:
        return self._course.made >= self._course.total and not self._at_work

    def clocks(self) -> Dict[str, int]:
        """Steps of each member, of all its lives."""
        with self.lock:
            return dict(self._clocks)
