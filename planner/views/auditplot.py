"""This view plots predicted against measured times."""

from pathlib import Path

from planner.audit.scoring.comparison import Comparison
from planner.audit.scoring.scoreboard import Scoreboard
from planner.errors import AuditError

FORMATS = (".png", ".svg", ".pdf")
BAND = 0.1
#: By number of workers, from one.
MARKERS = "osD^vP*Xhp"


def check(path: Path) -> None:
    """Raises AuditError for a file that no plot can be written to."""
    if path.suffix.lower() not in FORMATS:
        raise AuditError(f"{path}: no format for a plot; name a file that ends in {', '.join(FORMATS)}")


def save(board: Scoreboard, path: Path) -> None:
    """Write the times of all configurations in the format of ``path``'s suffix.

    Colours are audits, markers numbers of workers, hollow ones a device alone. Raises AuditError
    for other formats.
    """
    check(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(xscale="log", yscale="log", aspect="equal")
    steps = " and ".join(f"{each:,}" for each in sorted(set(board.steps.values())))
    title = f"{steps} steps{', emulated devices' * board.emulated}"
    axes.set(xlabel="measured time, s", ylabel="predicted time, s", title=title)
    times_s = [time_s for each in board.configurations for time_s in _times_s(each)]
    ends = [0.8 * min(times_s), 1.25 * max(times_s)]
    axes.fill_between(
        ends, [(1 - BAND) * end for end in ends], [(1 + BAND) * end for end in ends],
        color="0.9", linewidth=0, label=f"±{BAND:.0%}",
    )  # fmt: skip
    axes.plot(ends, ends, color="0.5", linewidth=0.8)
    for number, label in enumerate(board.steps):
        for workers in sorted({len(each.config.workers) for each in board.configurations if each.audit == label}):
            chosen = [e for e in board.configurations if (e.audit, len(e.config.workers)) == (label, workers)]
            colour = f"C{number % 10}"
            axes.plot(
                *zip(*map(_times_s, chosen), strict=True), MARKERS[(workers - 1) % len(MARKERS)],
                color=colour, markerfacecolor="none" if workers == 1 else colour, markersize=5, alpha=0.8,
                label=f"{label}, {workers} worker{'s' * (workers > 1)}",
            )  # fmt: skip
    axes.set(xlim=ends, ylim=ends)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=150)


def _times_s(judged: Comparison) -> tuple[float, float]:
    time = judged.figures["time"]
    assert time.measured is not None and time.predicted is not None
    return time.measured, time.predicted
