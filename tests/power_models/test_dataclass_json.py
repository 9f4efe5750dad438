import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from power_models.dataclass_json import Stored
from power_models.table import Floats, Ints


class Corner(NamedTuple):
    slope: float


@dataclass(frozen=True)
class Part(Stored):
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Whole(Stored):
    floats: Floats
    numbers: Ints
    corner: Corner
    parts: tuple[Part, ...]
    shares: Mapping[str, float]


WHOLE = Whole(np.array([0.5, 1.0]), np.array([3, 4]), Corner(2.0), (Part(("a", "b")), Part(())), {"x": 0.25})


def test_json_holds_the_fields_and_nested_objects() -> None:
    assert WHOLE.to_json() == {
        "floats": [0.5, 1.0],
        "numbers": [3, 4],
        "corner": {"slope": 2.0},
        "parts": [{"texts": ["a", "b"]}, {"texts": []}],
        "shares": {"x": 0.25},
    }


def test_from_json_an_equal_object_is_made() -> None:
    again = Whole.from_json(json.loads(json.dumps(WHOLE.to_json())))
    assert again.to_json() == WHOLE.to_json()
    assert (again.floats.dtype, again.numbers.dtype) == (np.float64, np.intp)
    assert (again.corner, again.parts, again.shares) == (WHOLE.corner, WHOLE.parts, WHOLE.shares)


@pytest.mark.parametrize(
    "change", [{"floats": ["x"]}, {"corner": {}}, {"parts": 3}, {"shares": {"x": "much"}}, {"numbers": [None]}]
)
def test_other_data_are_refused(change: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Whole.from_json({**WHOLE.to_json(), **change})
