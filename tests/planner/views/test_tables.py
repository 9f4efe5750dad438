"""The layout of tables: columns side by side, wrapped, left out, or a block a row."""

from hypothesis import given
from hypothesis import strategies as st

from planner.views.tables import TextTable, marked, stack
from tests.planner.screens import shown

NAMES = "jetson-tx2 jetson-nano jetson-xavier desktop"


def ranking() -> TextTable:
    made = TextTable("ranking", ("", "workers", "time", "± 95 %", "EDP"), left=("workers",), optional=("± 95 %",))
    made.add_row("1=", NAMES, "80.2 s", "3.7 %", "146 kJs")
    made.add_row("2", "desktop", "120 s", "-", "180 kJs")
    return made


def test_a_wide_screen_shows_every_column_on_one_line_a_row() -> None:
    assert shown(ranking()).splitlines() == [
        "ranking",
        "    workers                                         time  ± 95 %      EDP",
        "──  ────────────────────────────────────────────  ──────  ──────  ───────",
        "1=  jetson-tx2 jetson-nano jetson-xavier desktop  80.2 s   3.7 %  146 kJs",
        " 2  desktop                                        120 s       -  180 kJs",
    ]


def test_a_column_left_out_is_named_with_the_width_it_needs() -> None:
    made = ranking()
    text = shown(made, 50)
    assert "3.7 %" not in text
    assert text.splitlines()[-1] == f"not shown: ± 95 % (needs {made.full_width} columns)"


def test_a_row_becomes_a_block_where_its_essential_columns_do_not_fit() -> None:
    assert shown(ranking(), 32).splitlines() == [
        "ranking",
        "1=",
        "  workers  jetson-tx2",
        "           jetson-nano",
        "           jetson-xavier desktop",
        "  time     80.2 s",
        "  ± 95 %   3.7 %",
        "  EDP      146 kJs",
        "2",
        "  workers  desktop",
        "  time     120 s",
        "  ± 95 %   -",
        "  EDP      180 kJs",
    ]


cells = st.lists(st.text("ab -1é網", max_size=30), min_size=4, max_size=4)


@given(st.lists(cells, max_size=3), st.integers(40, 130))
def test_no_line_is_wider_than_the_screen_and_no_essential_figure_is_lost(rows: list[list[str]], width: int) -> None:
    made = TextTable("t", ("a", "b", "c", "d"), left=("a", "c"), optional=("c", "b"))
    for each in rows:
        made.add_row(*each)
    text = "".join(shown(made, width).split())
    for each in rows:
        for character in "".join(each[3].split()):
            assert character in text


def test_tables_and_notes_are_stacked_with_a_line_between() -> None:
    assert shown(stack([TextTable("one", ("a",)), TextTable("two", ("b",))], ["note"])).splitlines() == [
        "one", "a", "─", "", "two", "b", "─", "", "note"
    ]  # fmt: skip


def test_names_of_emulated_devices_are_marked() -> None:
    assert marked(["a", "b"], {"b"}) == "a b*"
    assert marked(["a", "b"], {"a"}, "+") == "a*+b"
