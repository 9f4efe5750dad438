"""At most three notes are shown, in the order in which they are given."""

from planner.views.notes import few, legend

FIVE = ["a", "b", "a", "c", "d", "e"]


def test_three_notes_are_shown_and_the_others_counted() -> None:
    assert few(FIVE, ["how"], verbose=False) == ["a", "b", "c", "2 more with --verbose"]
    assert few(FIVE[:2], ["how"], verbose=False) == ["a", "b"]


def test_all_notes_and_details_are_shown_if_verbose() -> None:
    assert few(FIVE, ["how"], verbose=True) == ["a", "b", "c", "d", "e", "how"]


def test_signs_that_are_shown_are_explained_in_one_line() -> None:
    assert legend("= ties", None, "* emulated") == ["= ties; * emulated"]
    assert legend(None) == []
