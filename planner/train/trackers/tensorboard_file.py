"""A TensorBoard file of a run, written with tensorboardX, which needs no TensorFlow."""

import time
from pathlib import Path

from planner.agents.call import Event
from planner.train.trackers.figures import Figure, RunFigures


class TensorBoardFile:
    """Writes each figure as a scalar, tagged with its name and then its worker or metric.

    folder: made if it is not there; ``tensorboard --logdir`` shows it under its name.
    Raises OSError where the file cannot be made.
    """

    def __init__(self, folder: Path, figures: RunFigures) -> None:
        # SummaryWriter writes in a thread that ends when the disk is full; who calls it then waits
        # forever. The writer below it raises.
        from tensorboardX.event_file_writer import EventsWriter

        self.path = folder
        self._figures = figures
        folder.mkdir(parents=True, exist_ok=True)
        self._writer = EventsWriter(str(folder / "events"))

    def add(self, source: str, event: Event) -> None:
        """Write the figures of an event. Raises OSError."""
        from tensorboardX.proto.event_pb2 import Event as Record
        from tensorboardX.summary import scalar

        found = self._figures.of(source, event)
        for figure in found:
            summary = scalar(_tag(figure), figure.value)
            self._writer.write_event(Record(wall_time=time.time(), step=figure.step, summary=summary))
        if found:
            self._writer.flush()

    def close(self) -> None:
        """Raises OSError where the rest cannot be written."""
        self._writer.close()


def _tag(figure: Figure) -> str:
    return "/".join(filter(None, (figure.name, figure.worker, figure.metric)))
