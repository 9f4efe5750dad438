"""JSON that is damaged in a few places, as a bad card, a careless editor or an enemy does it."""

import copy
import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

#: Enough to meet every key with something hard; the same ones in every run.
MUTATIONS = settings(
    max_examples=200, derandomize=True, database=None, suppress_health_check=list(HealthCheck), print_blob=False
)
#: What a value is replaced by.
HARD: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 0.5, -0.0, 1e-300, 1e300, 10**400, 2**63, float("inf"), float("-inf"), float("nan"),
    "", "x" * 100, "é\udcff", "../../x", [], {}, [[[[]]]], {"a": 1},
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, value: Any) -> Any:
    """The value with one to three values or keys replaced, removed, doubled or added."""
    changed = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        places = _places(changed)
        if not places:
            break
        container, key = places[draw(st.integers(0, len(places) - 1))]
        how = draw(st.integers(0, 9))
        if how == 0:
            del container[key]
        elif how == 1 and isinstance(container, list):
            container.append(copy.deepcopy(container[key]))
        elif how == 1:
            container["unknown"] = container.pop(key)
        else:
            container[key] = copy.deepcopy(HARD[draw(st.integers(0, len(HARD) - 1))])
    return changed


def damaged(text: bytes) -> st.SearchStrategy[bytes]:
    """The bytes cut, with a few of them changed, or with others put between."""
    places = st.integers(0, max(0, len(text) - 1))
    cut = places.map(lambda at: text[:at])
    changes = st.lists(st.tuples(places, st.integers(0, 8), st.binary(max_size=4)), min_size=1, max_size=3)
    return cut | changes.map(lambda found: _changed(text, found))


def written(value: Any) -> str:
    """As JSON, with the numbers that Python reads though JSON has none of them."""
    return json.dumps(value).encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _places(value: Any) -> list[tuple[Any, Any]]:
    keys: Any = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in ((value, key), *_places(value[key]))]


def _changed(text: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for at, gone, put in changes:
        text = text[:at] + put + text[at + gone :]
    return text
