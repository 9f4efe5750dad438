"""Where watts come from: words, sums and JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.json_records import decode
from planner.provenance import KINDS, Provenance
from profilers.records.json_values import json_value

PROVENANCES = st.builds(
    Provenance,
    st.sampled_from(KINDS),
    st.lists(st.sampled_from(["wall", "board", "module", "gpu", "cpu"]), unique=True, max_size=2).map(tuple),
    st.booleans(),
    st.sampled_from(["", "slowdown 4", "fleet file"]),
)


@pytest.mark.parametrize(
    ("provenance", "text"),
    [
        (
            Provenance("sensor", ("module",), True, "slowdown 4"),
            "integrated sensor of the module, emulated (slowdown 4)",
        ),
        (Provenance("counter", ("gpu", "cpu")), "energy counter of the GPU and CPU only"),
        (Provenance("sensor", ("wall",)), "integrated sensor of the wall plug"),
        (Provenance("model", ("board",)), "power model of the board"),
        (Provenance("nameplate", ("board",), detail="fleet file"), "nameplate (fleet file)"),
        (Provenance("unavailable", detail="no sensor"), "unavailable"),
    ],
)
def test_its_text_names_the_source_and_the_coverage(provenance: Provenance, text: str) -> None:
    assert provenance.text == text


def test_a_sum_is_as_good_as_its_weakest_part() -> None:
    parts = [
        Provenance("counter", ("gpu",)),
        Provenance("sensor", ("wall",), True, "slowdown 4"),
        Provenance("nameplate", ("board",), detail="fleet file"),
    ]
    joined = Provenance.joined(parts)
    assert (joined.kind, joined.covers, joined.emulated, joined.partial) == (
        "nameplate", ("wall", "board", "gpu"), True, True,
    )  # fmt: skip
    assert joined.detail == "slowdown 4; fleet file, in part counter, sensor"
    assert Provenance.joined([*parts, Provenance("unavailable")]).kind == "unavailable"
    with pytest.raises(ValueError, match="comes from nowhere"):
        Provenance.joined([])


@given(PROVENANCES)
def test_json_and_a_sum_of_one_part_change_nothing(provenance: Provenance) -> None:
    assert decode(Provenance, json_value(provenance)) == provenance
    assert set(Provenance.joined([provenance]).covers) == set(provenance.covers)
    assert Provenance.joined([provenance])._replace(covers=provenance.covers) == provenance
