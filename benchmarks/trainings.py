"""Trainings of several cases run in processes of their own; each adds a JSON line to a file."""

import argparse
import concurrent.futures
import json
import multiprocessing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reporting import json_lines

DEPTHWISE = f"{Path(__file__).parent / 'racing/depthwise.py'}:depthwise"
HELP = {"batch": "of each worker", "rate": "learning rate", "every": "steps between evaluations"}


class Setting(NamedTuple):
    """What all trainings of a benchmark have in common.

    batch: images of each worker's step. every: steps between evaluations.
    """

    model: str
    data: str
    workers: int
    batch: int
    rate: float
    momentum: float
    steps: int
    every: int
    test_images: int


def add_options(to: argparse.ArgumentParser, out: str, **defaults: Any) -> None:
    """Options of a setting, with these defaults, and of what ``make_missing`` does."""
    to.add_argument("--data", required=True, help="folder of images")
    for name, kind in Setting.__annotations__.items():
        if name != "data":
            option, default = f"--{name.replace('_', '-')}", defaults[name]
            to.add_argument(option, type=kind, default=default, help=f"{HELP.get(name, name)} [{default}]")
    to.add_argument("--seeds", type=int, default=3)
    to.add_argument("--processes", type=int, default=2)
    to.add_argument("--out", type=Path, default=Path(out))
    to.add_argument("--json", action="store_true", help="print JSON instead of a table")


def make_missing(
    run: Callable[[Setting, Any], dict[str, Any]], setting: Setting, cases: Sequence[Any], out: Path, processes: int
) -> list[dict[str, Any]]:
    """Make the trainings that a file lacks; return all of this setting that it has then.

    run: makes one, and gives a record with ``setting`` and ``case``. cases: named tuples.
    """
    done = {_key(found["setting"], found["case"]) for found in json_lines(out)}
    todo = [case for case in cases if _key(setting._asdict(), case._asdict()) not in done]
    spawned = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=spawned) as pool:
        for future in concurrent.futures.as_completed([pool.submit(run, setting, case) for case in todo]):
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(future.result()) + "\n")
    return [found for found in json_lines(out) if found["setting"] == setting._asdict()]


def _key(setting: dict[str, Any], case: dict[str, Any]) -> str:
    return json.dumps([setting, case], sort_keys=True)
