"""Lines are run in a process of their own before they are printed."""

from planner.export.lines import Lines, working


def test_lines_that_use_the_model_are_left_out_where_it_takes_no_zeros() -> None:
    load = ("x = [1]",)
    assert working(Lines(load, ("print(x[0])",))) == (Lines(load, ("print(x[0])",)), "")
    assert working(Lines(load, ("print(x[1])",))) == (Lines(load), "")


def test_lines_that_do_not_load_the_file_come_with_the_reason() -> None:
    lines = Lines(("x = y",), ("print(x)",))
    assert working(lines) == (lines, "NameError: name 'y' is not defined")


def test_the_reason_is_what_keras_says_before_it_lists_what_a_model_was_given() -> None:
    said = r"Exception encountered when calling Net.\n\n\x1b[1mno such key\x1b[0m\n\nReceived:\n  - a list"
    assert working(Lines((f"raise ValueError('{said}')",)))[1] == "no such key"
