from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from power_models.table import Table, as_number, read_csv


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "data.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_columns_are_numbers_or_words(tmp_path: Path) -> None:
    table = read_csv(written(tmp_path, "name,clock,watts\na,1000,61.5 W\nb,N/A,7e1\n")).table()
    assert table.names == ("name", "clock", "watts")
    assert list(table.columns["name"]) == ["a", "b"]
    assert table.numbers("watts") == pytest.approx([61.5, 70])
    assert np.isnan(table.numbers("clock")[1])
    assert np.isnan(table.numbers("name")).all()


def test_a_byte_order_mark_semicolons_quotes_and_empty_lines_do_no_harm(tmp_path: Path) -> None:
    table = read_csv(written(tmp_path, '﻿a;b\r\n"x;y";1\r\n\r\nz;2\r\n')).table()
    assert table.names == ("a", "b")
    assert list(table.columns["a"]) == ["x;y", "z"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('watts,name\n"1,234.5",a\n"12.5",b\n', [1234.5, 12.5]),
        ('watts,name\n"275,69",a\n"275,7",b\n', [275.69, 275.7]),
        ("watts;name\n1.234,5;a\n987;b\n", [1234.5, 987]),
        ("watts\tname\n1 234,5\ta\nN/A\tb\n", [1234.5, np.nan]),
        ("watts;name\n1'234.5;a\n-1e3;b\n", [1234.5, -1000]),
    ],
)
def test_decimal_commas_and_thousands_are_numbers(tmp_path: Path, text: str, values: list[float]) -> None:
    for encoding in ("utf-8", "utf-16"):
        table = read_csv(written(tmp_path, text.encode(encoding))).table()
        assert table.numbers("watts") == pytest.approx(values, nan_ok=True)
        assert list(table.columns["name"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("power,b\n0.275 kW,1\n300 W,2\n310,3\n", [275, 300, 310]),
        ("power [kW],b\n0.275 kW,1\n0.3,2\n", [0.275, 0.3]),
        ("rail_mw,b\n5.5 W,1\n", [5500]),
        ("energy,b\n2 kWh,1\n5 kJ,2\n", [7.2e6, 5000]),
        ("step_time,b\n12 ms,1\n", [0.012]),
        ("clock,b\n1200 MHz,1\n", [1200]),
    ],
)
def test_a_number_is_in_the_unit_that_its_column_names(tmp_path: Path, text: str, values: list[float]) -> None:
    file = read_csv(written(tmp_path, text))
    assert file.positive(file.table().names[0]) == pytest.approx(values)


@pytest.mark.parametrize("header", ["a;watts", "a;watts;"])
def test_a_separator_at_the_end_of_a_line_makes_no_column(tmp_path: Path, header: str) -> None:
    table = read_csv(written(tmp_path, f"{header}\n1;2,5;\n2;3\n")).table()
    assert table.names == ("a", "watts") and table.numbers("watts") == pytest.approx([2.5, 3])


def test_versions_and_dates_stay_words(tmp_path: Path) -> None:
    table = read_csv(written(tmp_path, "version,day\n2.1.0,2026.01.31\n2.0.1,2026.02.01\n")).table()
    assert list(table.columns["version"]) == ["2.1.0", "2.0.1"] and list(table.columns["day"])[0] == "2026.01.31"


def test_a_name_that_is_there_twice_gets_a_number(tmp_path: Path) -> None:
    assert read_csv(written(tmp_path, "a,a,b\n1,2,3\n")).table().names == ("a", "a.1", "b")
    assert read_csv(written(tmp_path, "a,a.1,a\n1,2,3\n")).table().names == ("a", "a.1", "a.2")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a CSV file"),
        ("one column\n1\n", "not a CSV file"),
        (b"a,b\n1,\xff\n", "0xff at byte 6 is no UTF-8 text; save it as UTF-8"),
        ('a,b\n"1,5",1\n"1.5",2\n', "line 3: a: '1.5' has other marks than the cells above it"),
        ('a,b\n"1,234",1\n"2,345",2\n', "line 2: a: '1,234' may be of thousands or have decimals"),
        ("a,b\n950 W,1\n1.2 kW,2\n", "line 3: a: '1.2 kW' is in another unit than its column, 'W'"),
        ("a,b\n1200 MHz,1\n1300,2\n", "line 3: a: '1300' is in another unit than its column, 'MHz'"),
        ("power,b\n12.5,1\n5 V,2\n", "line 3: power: '5 V' is in another unit than its column, 'W'"),
        ("power,b\n98 %,1\n", "line 2: power: '98 %' is in another unit than its column, 'W'"),
        ("a;b\n1.234;1\n1.301;2\n", "line 2: a: '1.234' may be of thousands or have decimals"),
        ("a\tb\n1,234\t1\n980\t2\n", "line 2: a: '1,234' may be of thousands or have decimals"),
        ("a,b\0\n1,2\n", "not a CSV file"),
        ("a,b\n", "no row below the header"),
        (",\n", "no row below the header"),
        ("a,b,c\n1,2,3\n1,2", "line 3 has 2 of 3 columns; is the file cut off?"),
        ('a,b\n1,"2\n', "not a CSV file"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(ValueError, match="data.csv") as refused:
        read_csv(written(tmp_path, text))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("", "line 3: watts is missing; give a number above zero"),
        ("-4", "line 3: watts is -4"),
    ],
)
def test_a_target_is_above_zero_in_every_line(tmp_path: Path, cell: str, said: str) -> None:
    file = read_csv(written(tmp_path, f"a,watts\n1,5\n2,{cell}\n"))
    with pytest.raises(ValueError, match="data.csv") as refused:
        file.positive("watts")
    assert said in str(refused.value)


def test_a_column_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    file = read_csv(written(tmp_path, "a,watts\n1,5\n"))
    with pytest.raises(ValueError, match="there is no column power; there are a, watts"):
        file.positive("power")
    with pytest.raises(ValueError, match="there is no column b, c; there are a, watts"):
        file.table().only(["a", "b", "c"])


def test_rows_that_agree_have_one_key() -> None:
    table = Table.of({"a": ["x", "x", "y", "x"], "b": [1, 1, 1, 2]})
    keys = table.keys(["a", "b"])
    assert keys[0] == keys[1]
    assert len(set(keys.tolist())) == 3


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_back(value: float) -> None:
    assert as_number(f" {value!r} ") == value
