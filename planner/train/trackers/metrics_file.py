"""A file of a run's newest figures for Prometheus, as node-exporter's textfile collector reads."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.agents.call import Event
from planner.train.trackers.figures import COUNTERS, MEANINGS, Figure, RunFigures

PREFIX = "planner_"
ACTIVE = "run_active"


class MetricsFile:
    """Writes all figures anew after each event that changes one.

    A reader never finds half a file, for prometheus_client renames a finished one. ``run`` labels
    each figure. The file stays when the run is over, with ``planner_run_active`` 0.
    Raises OSError where it cannot be written.
    """

    def __init__(self, path: Path, run: str, figures: RunFigures) -> None:
        self.path = path
        self._run = run
        self._figures = figures
        self._newest: dict[tuple[str, str, str], Figure] = {}
        self._is_active = True
        self._write()

    def add(self, source: str, event: Event) -> None:
        """Write the figures of an event. Raises OSError."""
        found = self._figures.of(source, event)
        self._newest.update({(each.name, each.worker, each.metric): each for each in found})
        if found:
            self._write()

    def close(self) -> None:
        """Say that the run is over. Raises OSError."""
        self._is_active = False
        self._write()

    def collect(self) -> Iterator[Any]:
        """The families of metrics, as prometheus_client asks for them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        active = GaugeMetricFamily(PREFIX + ACTIVE, "1 while the run trains, 0 afterwards.", labels=["run"])
        active.add_metric([self._run], self._is_active)
        yield active
        for name, meaning in MEANINGS.items():
            figures = [each for each in self._newest.values() if each.name == name]
            if figures:
                family = CounterMetricFamily if name in COUNTERS else GaugeMetricFamily
                labels = [_labels(self._run, each) for each in figures]
                made = family(PREFIX + name, meaning, labels=list(labels[0]))
                for figure, each in zip(figures, labels, strict=True):
                    made.add_metric(list(each.values()), figure.value)
                yield made

    def _write(self) -> None:
        from prometheus_client import CollectorRegistry, write_to_textfile

        registry = CollectorRegistry()
        registry.register(self)
        write_to_textfile(str(self.path), registry)


def _labels(run: str, figure: Figure) -> dict[str, str]:
    own = {"worker": figure.worker, "metric": figure.metric, "source": figure.source}
    return {"run": run, **{name: value for name, value in own.items() if value}}
