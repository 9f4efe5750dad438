"""Regression trees as arrays: read from scikit-learn once, then saved, loaded and used without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from power_models.table import Floats, Ints

LEAF = -1


@dataclass(frozen=True)
class Forest:
    """Binary trees behind one another. feature: which column a node asks, LEAF at a leaf; a row goes left where it is
    at most the threshold (as float32, as scikit-learn compares); value: at each node, left, right: node numbers."""

    roots: Ints
    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    value: Floats

    @classmethod
    def of(cls, trees: Sequence[Any]) -> "Forest":
        """From fitted regression trees of scikit-learn."""
        sizes = [tree.tree_.node_count for tree in trees]
        roots = np.cumsum([0, *sizes[:-1]]).astype(np.intp)
        feature = np.concatenate([tree.tree_.feature for tree in trees])
        pairs = list(zip(trees, roots, strict=True))
        return cls(
            roots,
            np.where(feature < 0, LEAF, feature).astype(np.intp),
            np.concatenate([tree.tree_.threshold for tree in trees]).astype(np.float64),
            np.concatenate([tree.tree_.children_left + root for tree, root in pairs]).astype(np.intp),
            np.concatenate([tree.tree_.children_right + root for tree, root in pairs]).astype(np.intp),
            np.concatenate([tree.tree_.value[:, 0, 0] for tree in trees]).astype(np.float64),
        )

    def leaves(self, matrix: Floats) -> Floats:
        """(trees, rows): the value that each tree gives each row of a matrix (rows, columns)."""
        single = matrix.astype(np.float32)
        node = np.repeat(self.roots[:, None], len(matrix), axis=1)
        rows = np.broadcast_to(np.arange(len(matrix)), node.shape)
        while (inner := self.feature[node] != LEAF).any():
            at = node[inner]
            below = single[rows[inner], self.feature[at]] <= self.threshold[at]
            node[inner] = np.where(below, self.left[at], self.right[at])
        return np.asarray(self.value[node], dtype=np.float64)

    def mean(self, matrix: Floats) -> Floats:
        """The mean over trees for each row."""
        return np.asarray(self.leaves(matrix).mean(axis=0), dtype=np.float64)

    def to_json(self) -> dict[str, Any]:
        names = ("roots", "feature", "threshold", "left", "right", "value")
        return {name: getattr(self, name).tolist() for name in names}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Forest":
        """Raises ValueError for nodes that do not come before their children: no row would ever reach a leaf."""
        roots, feature, left, right = (
            np.array(data[key], dtype=np.intp) for key in ("roots", "feature", "left", "right")
        )
        threshold, value = (np.array(data[key], dtype=np.float64) for key in ("threshold", "value"))
        inner = np.flatnonzero(feature != LEAF)
        if (np.minimum(left, right)[inner] <= inner).any():
            raise ValueError("a tree that runs in circles")
        return cls(roots, feature, threshold, left, right, value)
