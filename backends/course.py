"""How far a run has come, and what that makes due."""


class Course:
    """``made``: steps of all members, of which ``done`` count. An evaluation is due whenever a multiple of
    ``evaluate_every`` is passed, the last one made after ``evaluated`` steps, and one at the end."""

    def __init__(self, total: int, done: int, evaluated: int, evaluate_every: int, save_every: int = 0) -> None:
        self.total = total
        self.made = done
        self.evaluated = evaluated
        self._evaluate_every = evaluate_every
        self._save_every = save_every

    @property
    def done(self) -> int:
        """Steps made, of ``total``: the last round may have more."""
        return min(self.made, self.total)

    def step(self) -> bool:
        """One more step is made; whether a checkpoint is due now."""
        before, self.made = self.done, self.made + 1
        every = self._save_every
        return bool(every and self.done // every > before // every and self.done < self.total)

    def evaluation_due(self, trained: bool) -> bool:
        """Whether weights are to be evaluated; trained: whether nobody makes a step any more."""
        if trained:
            return self.evaluated != self.total
        every = self._evaluate_every
        return bool(every and self.done // every > self.evaluated // every and self.done < self.total)
