"""Results of chaos runs: a line of JSON each, and the table of faults made from them."""

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.chaos import oracle
from tests.chaos.observed import Observed
from tests.chaos.scenario import OPERATOR, Scenario

#: The generated part of docs/reliability.md lies between these lines.
BEGIN, END = "<!-- results of make chaos -->", "<!-- end of results -->"


class Result(NamedTuple):
    """One run.

    where: what the fault hit.
    noticed_s: after the fault; None where nothing told of it.
    """

    seed: int
    fault: str
    where: str
    outcome: str
    noticed_s: float | None
    seconds: float
    violations: tuple[str, ...]


def result(case: Scenario, seen: Observed) -> Result:
    return Result(
        case.seed, case.fault.kind, _where(case), oracle.outcome(case, seen), seen.noticed_s, seen.seconds,
        tuple(oracle.violations(case, seen)),
    )  # fmt: skip


def _where(case: Scenario) -> str:
    if case.fault.device == OPERATOR:
        return OPERATOR
    if case.needs_all:
        return "the only device" if case.is_alone else "a rank"
    return "the host" if case.hits_host else "a member"


def append(path: Path, found: Result) -> None:
    with path.open("a") as file:
        file.write(json.dumps(found._asdict()) + "\n")


def read(path: Path) -> list[Result]:
    """Those of a file, each seed's newest; a line that was not finished is none."""
    if not path.exists():
        return []
    lines = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    found: list[dict[str, Any]] = [json.loads(line) for line in lines]
    by_seed = {each["seed"]: Result(**{**each, "violations": tuple(each["violations"])}) for each in found}
    return list(by_seed.values())


def table(results: Iterable[Result]) -> str:
    """A table in Markdown: a row for each fault and what it hit."""
    rows: dict[tuple[str, str], list[Result]] = {}
    for each in results:
        rows.setdefault((each.fault, each.where), []).append(each)
    lines = ["| fault | hits | runs | noticed after, s | outcome | violations |", "|---|---|---|---|---|---|"]
    return "\n".join([*lines, *(_row(key, rows[key]) for key in sorted(rows))])


def _row(key: tuple[str, str], runs: list[Result]) -> str:
    noticed = [run.noticed_s for run in runs if run.noticed_s is not None]
    outcomes = [run.outcome for run in runs]
    told = "; ".join(f"{outcomes.count(each)} {each}" for each in sorted(set(outcomes)))
    cells = (*key, str(len(runs)), _spread(noticed), told, str(sum(bool(run.violations) for run in runs)))
    return f"| {' | '.join(cells)} |"


def _spread(values: list[float]) -> str:
    if not values:
        return "-"
    return f"{statistics.median(values):.1f}, at most {max(values):.1f}"


def write_table(page: Path, results: list[Result]) -> None:
    """Put the table into a page, between its two marks."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    bad = sum(bool(each.violations) for each in results)
    seeds = [each.seed for each in results]
    told = f"{len(results)} runs, seeds {min(seeds)} to {max(seeds)}, {bad} of them with a violation."
    page.write_text(f"{before}{BEGIN}\n{told}\n\n{table(results)}\n{END}{after}")
