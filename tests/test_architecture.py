"""The tables of files in docs/architecture.md are those of today's tree."""

import runpy
from pathlib import Path

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "file_tables.py"))


def test_tables_of_files_are_up_to_date() -> None:
    document = SCRIPT["DOCUMENT"].read_text(encoding="utf-8")
    assert SCRIPT["written"](document) == document, "run: python docs/file_tables.py"


def test_the_job_of_a_file_is_the_first_sentence_of_its_docstring() -> None:
    source = '"""A ring sends |x| bytes,\nas ``ring`` says. Pure.\n\nMore."""\n'
    assert SCRIPT["job"](source) == r"A ring sends \|x\| bytes, as `ring` says"
