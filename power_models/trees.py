"""Extremely randomised trees (Geurts et al. 2006) predict the target's logarithm."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from power_models.base import Estimate, Regressor, Target
from power_models.dataclass_json import Stored
from power_models.encoding import Encoder
from power_models.table import Floats, Ints, Table

OPTIONS = {"n_estimators": 200, "max_features": 0.6, "random_state": 0}
#: What Forest.feature holds at a leaf.
LEAF = -1


@dataclass(frozen=True)
class Forest(Stored):
    """Binary trees as arrays, read from scikit-learn once, then saved, loaded and used without it.

    roots: number of the first node of each tree.
    feature: the column that a node asks, LEAF at a leaf.
    threshold: a row at most this (as float32, as in scikit-learn) goes left.
    left, right, value: at each node, the numbers of its children and what it predicts.
    """

    roots: Ints
    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    value: Floats

    @classmethod
    def fit(cls, inputs: Floats, outputs: Floats) -> "Forest":
        """Extra-trees of scikit-learn."""
        from sklearn.ensemble import ExtraTreesRegressor

        fitted = ExtraTreesRegressor(**OPTIONS).fit(inputs, outputs)
        trees = [each.tree_ for each in fitted.estimators_]
        roots = np.cumsum([0, *(tree.node_count for tree in trees[:-1])]).astype(np.intp)
        rooted = list(zip(trees, roots, strict=True))
        return cls(
            roots,
            np.concatenate([np.maximum(tree.feature, LEAF) for tree in trees]).astype(np.intp),
            np.concatenate([tree.threshold for tree in trees]).astype(np.float64),
            np.concatenate([tree.children_left + root for tree, root in rooted]).astype(np.intp),
            np.concatenate([tree.children_right + root for tree, root in rooted]).astype(np.intp),
            np.concatenate([tree.value[:, 0, 0] for tree in trees]).astype(np.float64),
        )

    def mean(self, matrix: Floats) -> Floats:
        """The mean over trees for each row of a matrix (rows, columns)."""
        single = matrix.astype(np.float32)
        node = np.repeat(self.roots[:, None], len(matrix), axis=1)
        rows = np.broadcast_to(np.arange(len(matrix)), node.shape)
        while (inner := self.feature[node] != LEAF).any():
            at = node[inner]
            below = single[rows[inner], self.feature[at]] <= self.threshold[at]
            node[inner] = np.where(below, self.left[at], self.right[at])
        return np.asarray(self.value[node].mean(axis=0), dtype=np.float64)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Raises ValueError for a node behind its children: no row would reach a leaf."""
        made = super().from_json(data)
        inner = np.flatnonzero(made.feature != LEAF)
        if (np.minimum(made.left, made.right)[inner] <= inner).any():
            raise ValueError("a tree with a circle")
        return made


@dataclass(frozen=True)
class Trees(Regressor):
    """The mean of randomised trees. Beyond what it was fitted on it stays at the nearest value."""

    name: ClassVar[str] = "trees"
    summary: ClassVar[str] = "extra-trees: averages similar rows, never extrapolates"

    encoder: Encoder
    forest: Forest

    @classmethod
    def fit(cls, table: Table, target: Target) -> Self:
        encoder = Encoder.fit(table, logs=True)
        return cls(encoder, Forest.fit(encoder.matrix(table), target.logs))

    def predict(self, table: Table) -> Estimate:
        return Estimate.even(np.exp(self.forest.mean(self.encoder.matrix(table))))

    def describe(self) -> str:
        return f"{len(self.forest.roots)} trees, {len(self.forest.value)} nodes, {len(self.encoder.names)} columns"
