"""The table of faults is made from results that are read back from their file."""

from pathlib import Path

from tests.chaos import results
from tests.chaos.results import Result

KILLED = Result(0, "kill", "a member", "all steps made", 0.25, 6.0, ())
CUT = Result(1, "cut", "the host", "ended", 5.0, 9.0, ("12 steps are lost",))


def test_an_interrupted_file_is_read_and_a_seed_that_ran_again_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "chaos.jsonl"
    assert results.read(path) == []
    for each in (CUT, KILLED, CUT._replace(violations=())):
        results.append(path, each)
    with path.open("a") as file:
        file.write('{"seed": 7, "fau')
    assert results.read(path) == [CUT._replace(violations=()), KILLED]


def test_a_row_tells_the_runs_of_a_fault_and_what_came_of_them(tmp_path: Path) -> None:
    page = tmp_path / "reliability.md"
    page.write_text(f"Guarantees.\n{results.BEGIN}\nold\n{results.END}\nThe end.\n")
    later = KILLED._replace(seed=2, noticed_s=0.75, outcome="came after the end")
    results.write_table(page, [KILLED, later, CUT])
    told = page.read_text().splitlines()
    assert told[2] == "3 runs, seeds 0 to 2, 1 of them with a violation."
    assert "| cut | the host | 1 | 5.0, at most 5.0 | 1 ended | 1 |" in told
    assert "| kill | a member | 2 | 0.5, at most 0.8 | 1 all steps made; 1 came after the end | 0 |" in told
    assert (told[0], told[-1]) == ("Guarantees.", "The end.")
