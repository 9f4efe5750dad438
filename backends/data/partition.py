"""A partition divides training data among devices by label, as data are that arise on devices.

Samples that devices gather themselves are not drawn alike. Two partitions imitate that: few labels
a device (ScaDLES, Tyagi and Swany: 1 of CIFAR-10 on 10 devices, 4 of CIFAR-100 on 25), and shares
of each label drawn from a Dirichlet distribution. ``iid`` is the third: samples drawn alike, as in
``dataset.shards``.
"""

import hashlib
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from backends.data.dataset import apportion, largest_remainders, shards
from backends.protocol.member_specs import IID, DataPart

LABELS, DIRICHLET = "labels", "dirichlet"
FORMS = (IID, "%s=N" % LABELS, "%s=ALPHA" % DIRICHLET)
#: Of labels, and of a concentration: beyond it, devices differ by less than by chance.
MOST = 10**6
#: The owner of a sample that belongs to no device.
NOBODY = -1


class Partition(NamedTuple):
    """The text of ``--partition`` as an object.

    value: labels a device, or the concentration of the distribution; 0 for ``iid``.
    """

    kind: str = IID
    value: float = 0.0

    @classmethod
    def from_text(cls, text: str) -> "Partition":
        """Parse ``iid``, ``labels=N`` or ``dirichlet=ALPHA``. Raises ValueError for other texts."""
        kind, equals, number = text.partition("=")
        if text == IID:
            return cls()
        if kind not in (LABELS, DIRICHLET) or not equals:
            raise ValueError("there is no such partition; known: %s" % ", ".join(FORMS))
        try:
            value = float(number)
        except ValueError:
            value = 0.0
        if kind == LABELS and not (1 <= value <= MOST and value == int(value)):
            raise ValueError("N is a whole number from 1 to %d, as in labels=1" % MOST)
        if not 0 < value <= MOST:
            raise ValueError("ALPHA is a number above 0, at most %d, as in dirichlet=0.5" % MOST)
        return cls(kind, value)

    def divide(self, labels: np.ndarray, weights: Mapping[str, float], seed: int) -> "Division":
        """Divide samples among devices by their labels.

        labels: (count,) whole numbers or texts. weights: of the devices by name, in any order.

        ``labels=N``: the labels lie in a random circle, and each device in turn takes the next N.
        The samples of a label go to the devices that have taken it, in proportion to their weights.
        Labels that no device has taken are left out.

        ``dirichlet=ALPHA``: the devices' shares of each label are drawn from a Dirichlet
        distribution, whose means are in proportion to the weights and whose concentrations are
        ALPHA on average. Hsu et al. (Measuring the Effects of Non-Identical Data Distribution for
        Federated Visual Classification, 2019) draw the labels' shares of each device instead;
        drawn by label (Yurochkin et al., 2019), every sample has one owner.

        Raises ValueError where a device would have no sample.
        """
        assert self.kind != IID, "it looks at no label: own_samples"
        names = tuple(sorted(weights))
        random = np.random.RandomState(seed)
        _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        taken = self._taken(len(counts), names, weights, random) if self.kind == LABELS else None
        owners = np.full(len(labels), NOBODY, np.int32)
        by_label = np.split(np.argsort(codes.reshape(-1), kind="mergesort"), np.cumsum(counts)[:-1])
        for label, positions in enumerate(map(random.permutation, by_label)):
            if taken is None:
                sizes = largest_remainders(len(positions), self._drawn(names, weights, random) * len(positions))
            else:
                sizes = _sizes(len(positions), taken[label])
            owners[positions[: int(sizes.sum())]] = np.repeat(np.arange(len(names)), sizes)
        made = Division(names, owners)
        self._require_samples(made, seed)
        return made

    def _taken(
        self, labels: int, names: Sequence[str], weights: Mapping[str, float], random: np.random.RandomState
    ) -> List[np.ndarray]:
        """For every label the weights of the devices, 0 for those that have not taken it."""
        circle = random.permutation(labels)
        most = min(int(self.value), labels)
        taken = [np.zeros(len(names)) for _ in range(labels)]
        for place, name in enumerate(names):
            for step in range(most):
                taken[circle[(place * most + step) % labels]][place] = weights[name]
        return taken

    def _drawn(self, names: Sequence[str], weights: Mapping[str, float], random: np.random.RandomState) -> np.ndarray:
        """The devices' shares of one label.

        Gamma variates give a Dirichlet distribution. They are drawn as logarithms (of a variate of
        a + 1, times a uniform one to the power of 1 / a), since small ones would be 0.
        """
        mean = sum(weights[name] for name in names) / len(names)
        logarithms = []
        for name in names:
            shape = self.value * weights[name] / mean
            uniform = 1.0 - random.random_sample()
            logarithms.append(np.log(random.standard_gamma(shape + 1.0)) + np.log(uniform) / shape)
        shares: np.ndarray = np.exp(np.array(logarithms) - max(logarithms))
        shares /= shares.sum()
        return shares

    def _require_samples(self, made: "Division", seed: int) -> None:
        without = [name for name in made.names if not len(made.positions(name))]
        if not without:
            return
        more = "more labels a device" if self.kind == LABELS else "a larger ALPHA"
        raise ValueError(
            "it leaves no sample to %s; give %s, fewer devices, or another --seed than %d"
            % (", ".join(without), more, seed)
        )


class Division(NamedTuple):
    """Whose each sample is.

    names: of the devices, sorted.
    owners: (count,) int32, the place of the owner among them, NOBODY where there is none.
    """

    names: Tuple[str, ...]
    owners: np.ndarray

    def positions(self, name: str) -> np.ndarray:
        """Those of a device's samples, rising, (n,) int64."""
        found: np.ndarray = np.flatnonzero(self.owners == self.names.index(name))
        return found

    @property
    def digest(self) -> str:
        """Equal where names and owners are: devices that divide data themselves must agree."""
        content = "\n".join(self.names).encode() + self.owners.astype("<i4").tobytes()
        return hashlib.sha256(content).hexdigest()[:16]


class OwnSamples(NamedTuple):
    """A member's samples. digest: of the division, empty for ``iid``."""

    positions: np.ndarray
    digest: str = ""


def own_samples(part: DataPart, count: int, read_labels: Callable[[], np.ndarray]) -> OwnSamples:
    """The samples of a member among ``count``.

    read_labels: gives all labels; not called for ``iid``. Raises ValueError as ``divide`` does, and
    what ``read_labels`` raises.
    """
    partition = Partition.from_text(part.partition)
    if partition.kind == IID:
        return OwnSamples(shards(count, part.weights, part.seed)[part.member])
    made = partition.divide(read_labels(), dict(zip(part.names, part.weights)), part.seed)
    return OwnSamples(made.positions(part.names[part.member]), made.digest)


def as_labels(values: Any, count: int) -> np.ndarray:
    """Labels of ``count`` samples, (count,). Raises ValueError for what are no labels of them."""
    labels = np.asarray(values)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.dtype.kind not in "biuU":
        raise ValueError("targets of type %s are no labels; whole numbers and texts are" % labels.dtype)
    if labels.shape != (count,):
        raise ValueError("%s targets for %d samples are no labels; give one a sample" % (labels.shape, count))
    return labels


def counted(labels: np.ndarray) -> Dict[str, int]:
    """Samples by label, as text, in the order of the labels."""
    kinds, numbers = np.unique(labels, return_counts=True)
    return {str(kind): int(number) for kind, number in zip(kinds, numbers)}


def _sizes(count: int, weights: np.ndarray) -> np.ndarray:
    """How many of a label's samples each device has; none where its weight is 0."""
    sizes = np.zeros(len(weights), np.int64)
    holders = np.flatnonzero(weights)
    if len(holders):
        own = weights[holders]
        sizes[holders] = apportion(count, own * (count / own.sum()))
    return sizes
