"""Which peers hand over weights before their next step: to new members, or for a checkpoint."""

from typing import Dict, List, Optional, Set

from backends.protocol.frames import GIVE, SAVE, TAKE


class HandOvers:
    """The hand-overs that are due. Not thread-safe: its owner holds the run's lock.

    host: the member on the coordinator's device, which needs no link and is therefore saved first.
    without_weights: members that are to receive the weights of the run.
    donor: who gives them; None when they have arrived, or are not needed.
    unsaved: who is to send what it has for a checkpoint.
    awaited: whether the checkpoint has not been written yet; it may be without who takes too long.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self.without_weights: Set[str] = set()
        self.donor: Optional[str] = None
        self.unsaved: Set[str] = set()
        self.awaited = False

    def leave(self, name: str) -> None:
        """A member is gone."""
        self.without_weights.discard(name)
        self.unsaved.discard(name)

    def ask(self, names: Set[str]) -> None:
        """These members are to send what they have for a checkpoint."""
        self.unsaved, self.awaited = names - self.without_weights, True

    def take_save(self, late: bool) -> bool:
        """Whether the checkpoint that is awaited can be written, which the caller then does.

        late: without those that have not handed over anything.
        """
        ready = self.awaited and (late or not self.unsaved)
        self.awaited = self.awaited and not ready
        return ready

    def next_of(self, name: str, host_first: bool) -> Optional[str]:
        """SAVE, GIVE or TAKE, if the member must send or receive weights now; else None.

        host_first: members have equal weights, so that one alone sends them.
        """
        if name in self.unsaved and not (host_first and name != self._host and self._host in self.unsaved):
            return SAVE
        if self.donor == name:
            return GIVE
        if name in self.without_weights and self.donor is None:
            return TAKE
        return None

    def choose_donor(self, steps: Dict[str, int], in_step: bool) -> None:
        """Let the member with the most steps give its weights to members without any.

        steps: of all members, in the order of ranks; those that receive weights are given theirs.
        in_step: whether members make the same steps. Those that were interrupted in a step that
        another member completed then also receive its weights.
        """
        known: List[str] = [name for name in steps if name not in self.without_weights] or list(steps)[:1]
        furthest = max(known, key=lambda name: (steps[name], name))
        self.without_weights.discard(furthest)
        made = steps[furthest]
        if in_step:
            self.without_weights.update(name for name in known if steps[name] < made)
        else:
            made = min(steps[name] for name in known)
        for name in self.without_weights:
            steps[name] = made
        self.donor = furthest if self.without_weights else None
