"""A scoreboard is shown as tables."""

from collections.abc import Iterable

from rich.console import RenderableType

from planner.audit.scoring import scoreboard
from planner.audit.scoring.comparison import Comparison
from planner.audit.scoring.scoreboard import ERROR_GROUPS, GROUPS, Scoreboard
from planner.audit.scoring.selections import Hits, Selection, Spread, Summary
from planner.predict.clusters import ClusterConfig
from planner.units import percent, seconds
from planner.views.tables import EMULATED_NOTE, TextTable, marked, stack

TIES_NOTE = "with ties: the best cluster, or one that the measurements cannot tell from it (95 %)"
DRIFT_NOTE = (
    "no drift: predicted again for the speed that each device had in that run by its reference loop (fixed work "
    "beside the steps); errors are medians over repetitions"
)
RULE_NOTES = (
    "rules that predict no watts: they use the watts under load",
    "by FLOPS: only CPUs count",
    "one α, one β: fitted to these very measurements, which favours this rule",
    "measured before: chooses by what the other repetitions of the same runs measured",
)
#: Against what watts are scored where devices are emulated.
EMULATED_POWER_NOTE = (
    "power*: scored against an emulation that has the planner's own form, idle watts and a share of the dynamic ones; "
    "a lab bends it by terms that the planner does not have, unless its spec switches them off; docs/audit.md says "
    "how this form fares on real machines"
)
#: Errors in the summary.
SUMMARISED = (("alone", True, ("step", "power")), ("clusters", False, ("time", "power", "energy")))
#: Quantities that are emulated where watts are.
WATTS = ("power", "energy", "edp")


def render(board: Scoreboard, top: int = 10) -> RenderableType:
    """All tables, with the ``top`` worst configurations and misses (0: all)."""
    tables = [
        _summary(board), _errors(board), _errors_by_group(board), _rules(board), _breakdown(board),
        _configurations(board, top),
    ]  # fmt: skip
    missed = [each for each in board.planner.selections if not each.hit]
    if missed:
        tables.append(_missed(board, sorted(missed, key=lambda each: -each.regret), top))
    return stack(tables, [*_notes(board), DRIFT_NOTE, *RULE_NOTES])


def _summary(board: Scoreboard) -> TextTable:
    made = TextTable(f"audit of {', '.join(board.steps)}", ("", "planner", "paper"), left=("",))
    paper, ours, mark = scoreboard.REPORTED, board.planner.summary, "*" * board.emulated
    if ours is not None:
        made.add_row("best one chosen", _hits(ours.best), percent(paper.best))
        made.add_row("  with ties", _hits(ours.best_tied), "-")
        made.add_row("best among the first two", _hits(ours.first_two), percent(paper.first_two))
        made.add_row("  with ties", _hits(ours.first_two_tied), "-")
        regrets = f"{100 * ours.mean_regret:.1f}, {100 * ours.median_regret:.1f}, {percent(ours.worst.regret)}"
        made.add_row("regret: mean, median, worst", regrets, "-")
        made.add_row("rank correlation (τ)", _tau(ours.mean_tau), "-")
    for who, alone, quantities in SUMMARISED:
        for quantity, errors in board.errors(alone).items():
            if quantity in quantities:
                marks = mark if quantity in WATTS else ""
                reported = {"step": paper.step_error, "power": paper.power_error}.get(quantity) if alone else None
                made.add_row(f"error of {quantity}{marks}, {who}: mean, worst", _error(errors.raw), _range(reported))
                made.add_row("  no drift", _error(errors.steady), "-")
                if quantity == "power" and errors.raw is not None:
                    made.add_row("  scored against", board.power_scored_against, "-")
        made.add_row(f"time inside its 90 % interval, {who}", _hits(board.coverage(alone)), "-")
        if board.left_out:
            made.add_row("  fleets left out in turn", _hits(board.left_out_coverage(alone)), "-")
    counted = board.left_out_coverage if board.left_out else board.coverage
    for kind in board.exchanges if len(board.exchanges) > 1 else ():
        made.add_row(f"  exchange: {kind}", _hits(counted(False, exchange=kind)), "-")
    if board.single.repeated is not None:
        made.add_row("time of one run, clusters: mean, worst", _error(board.single.predicted), "-")
        made.add_row("  predicted by its other repetitions", _error(board.single.repeated), "-")
    made.add_row("error of extrapolation: mean, worst", _error(board.extrapolated()), "-")
    shares = [each.share for found in board.overheads.values() for each in found]
    made.add_row("profiling time / training time", _range((min(shares), max(shares))), _range(paper.overhead))
    return made


def _errors(board: Scoreboard) -> TextTable:
    columns = ("error of", "number", "mean", "worst", "median (range)")
    drifted = tuple(f"no drift: {column}" for column in columns[2:])
    title = "errors of all configurations (predicted / measured - 1)"
    made = TextTable(title, (*columns, *drifted), left=("error of",), optional=drifted[::-1])
    for who, alone in (("alone", True), ("clusters", False)):
        for quantity, errors in board.errors(alone).items():
            if errors.raw:
                marks = "*" * (board.emulated and quantity in WATTS)
                cells = [cell for spread in errors for cell in _spread(spread)]
                made.add_row(f"{who}: {quantity}{marks}", str(errors.raw.number), *cells)
        worst = board.worst_run(alone)
        made.add_row(f"{who}: time of one run", "", "", percent(worst if worst is None else abs(worst)), *[""] * 4)
    return made


def _errors_by_group(board: Scoreboard) -> TextTable:
    mark = "*" * board.emulated
    drifted = ("step, no drift", "time, no drift", f"power{mark}, no drift")
    columns = (
        "", "step, alone", drifted[0], "time, clusters", drifted[1], f"power{mark}, clusters", drifted[2], "paper: step"
    )  # fmt: skip
    title = "mean and worst errors by model and audit"
    made = TextTable(title, columns, left=("",), optional=("paper: step", *drifted[::-1]))
    for group in ERROR_GROUPS:
        for name in board.names(group):
            alone, clusters = (board.errors(who, **{group: name}) for who in (True, False))
            found = (*alone["step"], *clusters["time"], *clusters["power"])
            cells = (_error(each) for each in found)
            reported = scoreboard.STEP_ERROR.get(name) if group == "model" else None
            made.add_row(f"{group} {name}", *cells, percent(reported))
    return made


def _rules(board: Scoreboard) -> TextTable:
    columns = ("rule", "of", *_TALLY, "time", f"power{'*' * board.emulated}")
    title = "selections by each rule, and its mean and worst error of time and power over clusters"
    made = TextTable(title, columns, left=("rule",), optional=LEAST_OF_SUMMARY)
    for name, rule in board.rules.items():
        if rule.summary is not None:
            errors = (_error(rule.errors[metric]) for metric in ("time", "power"))
            made.add_row(name, str(rule.summary.best.of), *_tally(rule.summary), *errors)
    return made


def _breakdown(board: Scoreboard) -> TextTable:
    columns = ("", "of", *_TALLY, "paper: best")
    made = TextTable("our selections by model, audit and metric", columns, ("",), ("paper: best", *LEAST_OF_SUMMARY))
    for group in GROUPS:
        for name, found in board.breakdown(group).items():
            reported = scoreboard.BEST.get(name) if group == "model" else None
            made.add_row(f"{group} {name}", str(found.best.of), *_tally(found), percent(reported))
    return made


def _configurations(board: Scoreboard, top: int) -> TextTable:
    worst = sorted(board.configurations, key=lambda each: -abs(each.figures["time"].error or 0.0))
    shown = worst[: top or None]
    columns = ("configuration", "time", "predicted", "error", "no drift", f"power{'*' * board.emulated}",
               "worst worker", "its step", "step predicted", "bottleneck")  # fmt: skip
    title = f"worst {len(shown)} of {len(worst)} configurations by the error of their time"
    made = TextTable(title, columns, left=("configuration", "worst worker", "bottleneck"), optional=columns[:3:-1])
    for each in shown:
        time, cycle = each.figures["time"], each.workers[each.off].cycle_s
        made.add_row(
            f"{each.audit} {each.model} {_config(each.config, _emulated([each]))}",
            seconds(time.measured), seconds(time.predicted), percent(time.error), percent(time.steady_error),
            percent(each.figures["power"].error),
            each.off, seconds(cycle.measured), seconds(cycle.predicted), each.bottleneck,
        )  # fmt: skip
    return made


def _missed(board: Scoreboard, missed: list[Selection], top: int) -> TextTable:
    shown = missed[: top or None]
    columns = ("audit", "model", "metric", "repetition", "chosen", "best", "regret", "tie")
    left = ("audit", "model", "metric", "chosen", "best")
    made = TextTable(f"worst {len(shown)} of {len(missed)} misses", columns, left, optional=("tie", "repetition"))
    for each in shown:
        stand_ins = _stand_ins(board, each)
        made.add_row(
            each.audit, each.model, each.metric, str(each.repetition),
            _config(each.chosen, stand_ins), _config(each.best, stand_ins),
            percent(each.regret), "yes" if each.hit_tied else "no",
        )  # fmt: skip
    return made


def _notes(board: Scoreboard) -> list[str]:
    found = [TIES_NOTE, f"paper: {scoreboard.SOURCE}", *[EMULATED_NOTE, EMULATED_POWER_NOTE] * board.emulated]
    found += [
        f"{label}: {count} runs are missing; of their repetitions no choice is counted"
        for label, count in board.missing.items() if count
    ]  # fmt: skip
    if board.planner.summary is not None and (worst := board.planner.summary.worst).regret:
        chosen, best = (_config(each, _stand_ins(board, worst)) for each in (worst.chosen, worst.best))
        where = f"{worst.audit}, {worst.model} by {worst.metric}, repetition {worst.repetition}"
        found.append(f"worst regret, {percent(worst.regret)}: {where}: {chosen} chosen, {best} measured best")
    return found


_TALLY = ("best", "or tied", "top 2", "top 2 tied", "regret", "median", "worst", "τ")
#: Columns of a summary that a narrow screen leaves out first.
LEAST_OF_SUMMARY = ("top 2 tied", "or tied", "median", "top 2")


def _tally(of: Summary) -> tuple[str, ...]:
    hits = (of.best, of.best_tied, of.first_two, of.first_two_tied)
    regrets = (of.mean_regret, of.median_regret, of.worst.regret)
    return (*(percent(each and each.share) for each in hits), *(percent(each) for each in regrets), _tau(of.mean_tau))


def _hits(of: Hits | None) -> str:
    return "-" if of is None else f"{of} = {percent(of.share)}"


def _error(of: Spread | None) -> str:
    return "-" if of is None else f"{100 * of.mean_abs:.1f}, {percent(of.worst_abs)}"


def _spread(of: Spread | None) -> tuple[str, str, str]:
    if of is None:
        return "-", "-", "-"
    middle = f"{percent(of.median)} ({100 * of.least:.1f} to {100 * of.greatest:.1f})"
    return percent(of.mean_abs), percent(of.worst_abs), middle


def _range(of: tuple[float, float] | None) -> str:
    return "-" if of is None else f"{100 * of[0]:.1f} to {percent(of[1])}"


def _tau(of: float | None) -> str:
    return "-" if of is None else f"{of:.2f}"


def _config(of: ClusterConfig, stand_ins: set[str]) -> str:
    names = marked(of.workers, stand_ins, "+")
    return names if len(of.workers) == 1 else f"{names} at {of.server}"


def _emulated(judged: Iterable[Comparison]) -> set[str]:
    return {name for each in judged for name, part in each.workers.items() if part.provenance.emulated}


def _stand_ins(board: Scoreboard, of: Selection) -> set[str]:
    return _emulated(each for each in board.configurations if (each.audit, each.model) == (of.audit, of.model))
