"""What a run of peers has in one place: who does what next, batches, whose knowledge is best, and checkpoints."""

import math
import time
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from backends.frameworks.base import Arrays
from backends.peers.membership import MembershipScheduler, PeerWorkItem
from backends.protocol import Emit
from backends.strategies import knowledge_transfer
from backends.training import checkpoint
from backends.training.coordinator import Coordinator
from backends.training.layout import Layout
from backends.training.member_stats import MemberStats
from backends.training.run_spec import RunSpec, last_evaluated
from backends.training.step_queue import STEP

#: How long the first epoch waits for members that are still building their models.
PATIENCE_S = 60.0
ORPHANED = "no member is left that has the weights"


class PeerCoordinatorState(Coordinator):
    """Keeps no weights but those on their way, from one who gives them to those who come, or into a checkpoint.

    Raises ValueError or OSError where the checkpoint to go on from cannot be used.
    """

    def __init__(self, work: RunSpec, emit: Emit) -> None:
        super().__init__(work, emit)
        self._losses: Dict[str, knowledge_transfer.LossWindow] = {}
        self._arrived: Dict[str, Dict[str, Arrays]] = {}
        self._epoch = 0
        self._ending = False
        self._initial = ""
        self._digests: Dict[str, str] = {}
        self.layout: Optional[Layout] = None
        self.copy: Arrays = ()
        self.addresses: Dict[str, Any] = {}
        self._kept_before: Dict[str, Dict[str, Arrays]] = {}
        self.tickets = self._begin()

    def _begin(self) -> MembershipScheduler:
        work, done, evaluated = self.work, 0, 0
        if work.resume is not None:
            saved, self.layout = checkpoint.read(work.resume)
            done, evaluated = int(saved.meta["step"]), last_evaluated(saved.meta)
            self.copy = (saved.weights, saved.momentum, saved.state)
            for key, arrays in self._resume(saved).items():
                name, _, label = key.partition("/")
                self._kept_before.setdefault(name, {})[label] = arrays
        patience_s = PATIENCE_S if work.members > 1 else 0.0
        every = work.evaluate_every, work.checkpoint_every
        return MembershipScheduler(
            work.steps, work.strategy.sync, work.members, patience_s, done, evaluated, *every, host=work.host
        )

    # -- who is there ------------------------------------------------------------------------------

    def join(self, name: str, layout: Layout, address: List[Any], digest: str) -> Optional[Dict[str, Arrays]]:
        """One comes; what it is to go on from, where a resumed run has that: weights and velocity as "own", (state,) as
        "state", and what else it had by name.

        digest: of its weights; one whose initial ones are those of the first need not take them. Raises ValueError
        where its model is another.
        """
        with self._lock:
            if self.layout is None:
                self.layout = layout
            if layout != self.layout:
                raise ValueError("its model is not the run's: the arrays have other names or shapes")
            self.addresses[name] = address
            self._losses[name] = knowledge_transfer.LossWindow()
            if self.work.resume is None or self._epoch:
                self._initial = self._initial or digest
                self.tickets.join(name, None if self._epoch or digest != self._initial else 0)
                return None
            kept = dict(self._kept_before.get(name, {}))
            clock = int(kept.pop("clock")[0][0]) if "clock" in kept else self.tickets.done // self.work.members
            self.tickets.join(name, clock)
            return dict({"own": self.copy[:2], "state": self.copy[2:]}, **kept)

    def leave(self, name: str) -> None:
        """One is gone; with the last who has the weights the run is over."""
        with self._lock:
            self.tickets.leave(name)
            if not self.tickets.over:
                self._arrived.pop(name, None)
                if self.tickets.orphaned:
                    self.stop(ORPHANED)

    def forget(self, name: str) -> None:
        """Nothing more is known of it."""

    # -- steps -------------------------------------------------------------------------------------

    def take(self, name: str, gone: Callable[[], bool]) -> PeerWorkItem:
        """The member's next turn; waits for it."""
        turn = self.tickets.ask(name, gone)
        with self._lock:
            if turn.epoch != self._epoch:
                self._epoch = turn.epoch
                self._pacing.begin(turn.members)
        return turn

    def order(self, name: str, turn: PeerWorkItem) -> Dict[str, Any]:
        """What a member is told to do."""
        order: Dict[str, Any] = {"kind": turn.kind, "step": turn.step, "epoch": turn.epoch}
        if turn.kind != STEP:
            return order
        with self._lock:
            passed = min(self.work.steps, turn.step * len(turn.members))
            rate = self.work.optimiser_at(passed).rate
            return dict(
                order,
                members=[[each] + self.addresses[each] for each in turn.members],
                rate=rate,
                batch=self._pacing.batch(name),
                gives_to=self._takers(name, turn),
            )

    def _takers(self, name: str, turn: PeerWorkItem) -> List[str]:
        """Who is to get this member's weights now."""
        whom = self.work.strategy.knowledge
        if whom == "none" or not knowledge_transfer.due(turn.step):
            return []
        means = {each: self._losses[each].mean() for each in turn.members}
        return list(knowledge_transfer.takers(means, whom)) if knowledge_transfer.best(means) == name else []

    def stepped(
        self, name: str, peer: MemberStats, turn: PeerWorkItem, loss: float, batch: int, seconds: float
    ) -> None:
        """A member has made its step."""
        if not math.isfinite(loss):
            self._diverged(name, turn, loss)
            return
        with self._lock:
            peer.learnt(loss, 0)
            self._losses[name].add(loss)
            self._pacing.note(name, batch, seconds)
            self.tickets.complete(name)
            if self.tickets.done == self.work.steps:
                self.ended = self.ended or time.monotonic()

    def interrupted(self, name: str) -> None:
        """A member could not end its step."""
        self.tickets.abandon(name)
        self.tickets.interrupted()

    # -- checkpoints -------------------------------------------------------------------------------

    def asks_last(self, name: str) -> bool:
        """Whether a member that is told to finish hands over what it has."""
        return self.work.checkpoint_path is not None

    def wants(self, name: str, digest: str, last: bool = False) -> bool:
        """Whether a member is to hand over its weights: not where another's with the same digest are here or coming.

        last: at its end; then what came before counts no longer.
        """
        with self._lock:
            if last and not self._ending:
                self._arrived.clear()
                self._ending = True
            known = {each for other, each in self._digests.items() if other != name and other in self._arrived}
            self._digests[name] = digest
            self._arrived[name] = {}
            return digest not in known

    def keep(self, name: str, arrays: Dict[str, Arrays], clock: int) -> None:
        """What a member has: weights and velocity (parameters,) as "own", if it was to hand them over, (state,) as
        "state", and the rest by name."""
        with self._lock:
            self._arrived[name] = dict(arrays, clock=(np.array([clock], np.int64),))

    def saved(self, name: str) -> None:
        """A member has handed over what it has, as it was asked to."""
        with self._lock:
            if self.tickets.saved(name):
                if self._handed_over:
                    self._saver.behind(self._snapshot, self._layout)
                self._arrived = {}

    @property
    def _layout(self) -> Layout:
        assert self.layout is not None, "who has handed over something has joined"
        return self.layout

    @property
    def _handed_over(self) -> bool:
        return any("own" in each for each in self._arrived.values())

    def _snapshot(self) -> checkpoint.Checkpoint:
        """Means over the members, beside what is each one's own; weights that all have alike are kept once."""
        arrived, digests = sorted(self._arrived.items()), self._digests
        own = {digests[name]: each["own"] for name, each in arrived if "own" in each}
        each = [own[digests[name]] for name, _ in arrived if digests[name] in own]
        mean = each[0] if len(own) == 1 else [np.mean(part, axis=0, dtype=np.float32) for part in zip(*each)]
        states = [each["state"][0] for _, each in arrived if "state" in each]
        kept = self._kept()
        for name, arrays in arrived:
            kept.update({name + "/" + label: a for label, a in arrays.items() if label not in ("own", "state")})
            if len(own) > 1 and digests[name] in own:
                kept[name + "/own"] = own[digests[name]]
        return checkpoint.Checkpoint(mean[0], mean[1], np.mean(states, axis=0, dtype=np.float32), self._meta(), kept)

    @property
    def _has_all(self) -> bool:
        """Whether members have handed over what they have at the end."""
        return self._ending and self._handed_over
