"""Sample efficiencies are read from a file; workers in step need more images the more they are."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import RecordError
from planner.json_records import load, save
from planner.predict import sample_efficiency
from planner.predict.sample_efficiency import NONE, SampleEfficiency, Source, images_factor, newest

SOURCE = Source("cipher", "fashion-mnist", 3000, 32, 0.7, ("net-a",), (6,), "2026-11-21")


@given(st.integers(2, 64), st.integers(1, 512), st.floats(1.0, 1e4))
def test_more_workers_need_more_images_but_fewer_steps(workers: int, batch: int, critical: float) -> None:
    before, more = images_factor(workers - 1, batch, critical), images_factor(workers, batch, critical)
    assert 1.0 <= before <= more <= workers
    assert more / workers <= before / (workers - 1) + 1e-9
    assert images_factor(1, batch, critical) == pytest.approx(1.0)


def test_the_working_folder_s_file_comes_before_the_shipped_one(tmp_path: Path) -> None:
    assert newest(tmp_path) == load(sample_efficiency.SampleEfficiencies, sample_efficiency.SHIPPED)
    own = NONE._replace(source=SOURCE, measured=(SampleEfficiency("hop", 0.5, 0.4, 0.6, 3, 0),))
    save(own, tmp_path / "sample_efficiency.json")
    assert newest(tmp_path) == own


def test_a_file_that_does_not_fit_is_named(tmp_path: Path) -> None:
    (tmp_path / "sample_efficiency.json").write_text(
        json.dumps({"schema": 1, "source": None, "measured": [{}], "missed": []})
    )
    with pytest.raises(
        RecordError, match=r"sample_efficiency.json: sample_efficiencies.measured\[0\].*benchmarks/sample_efficiency.py"
    ):
        newest(tmp_path)


def test_what_is_shipped_names_where_it_was_measured_or_holds_nothing() -> None:
    shipped = load(sample_efficiency.SampleEfficiencies, sample_efficiency.SHIPPED)
    assert shipped.source is not None or shipped == NONE
    assert all(each.pairs > 0 and each.least <= each.mean <= each.most for each in shipped.measured)
