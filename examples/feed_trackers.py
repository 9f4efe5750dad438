"""Feed Weights & Biases or MLflow from the events of a run (docs/events.md).

    python feed_trackers.py runs/RUN --to wandb --follow

Nothing in it is of planner: it reads the JSON lines that `planner train` writes.
"""

import argparse
import json
import sys
import time
from pathlib import Path

POLL_S = 0.5


def lines(path, follow):
    """Yield the events of a log; with ``follow`` until the run has ended."""
    with path.open(encoding="utf-8") as log:
        written = ""
        while True:
            written += log.readline()
            if written.endswith("\n"):
                event, written = json.loads(written), ""
                yield event
                if event.get("type") == "run_ended":
                    return
            elif follow:
                time.sleep(POLL_S)
            else:
                return


def figures(event):
    """Give a step and what to plot at it; most events have nothing."""
    if event.get("type") == "evaluated":
        return event["step"], {"test/loss": event["loss"], **{f"test/{k}": v for k, v in event["metrics"].items()}}
    if event.get("type") == "progress":
        workers = event["workers"].items()
        losses = {f"loss/{name}": each["loss"] for name, each in workers if each["loss"] is not None}
        return event["done"], {"elapsed_s": event["elapsed_s"], **losses}
    return 0, {}


def tracker(name, run):
    """Return a function that plots figures at a step, and one that ends the tracker's run."""
    try:
        if name == "wandb":
            import wandb

            wandb.init(project="planner", name=run.name)
            return lambda step, found: wandb.log(found, step=step), wandb.finish
        import mlflow

        mlflow.start_run(run_name=run.name)
        return lambda step, found: mlflow.log_metrics(found, step=step), mlflow.end_run
    except ImportError:
        sys.exit(f"feed_trackers: {name} is not installed here: pip install {name}")


def main():
    """Parse the options, and feed the tracker until the log ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--to", choices=["wandb", "mlflow"], required=True)
    parser.add_argument("--follow", action="store_true", help="wait for more until the run has ended")
    arguments = parser.parse_args()
    log = arguments.run / "events.jsonl"
    if not log.is_file():
        sys.exit(f"feed_trackers: {log} is not there; name a run folder of planner train")
    plot, end = tracker(arguments.to, arguments.run)
    for event in lines(log, arguments.follow):
        step, found = figures(event)
        if found:
            plot(step, found)
    end()


if __name__ == "__main__":
    main()
