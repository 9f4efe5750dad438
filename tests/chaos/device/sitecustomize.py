"""In a process with this folder on its path, clocks jump and disks are slow when a file says so.

The files lie beside what ``PLANNER_TEST_DEVICE`` names: NAME.clock holds seconds, NAME.slow none.
The framework called torch is in numpy, unless ``CHAOS_TORCH`` is set.
"""

import os
import runpy
import time

MARK = os.environ.get("PLANNER_TEST_DEVICE", "")
SLOW_S = 1.0
_now, _replace, _fsync = time.time, os.replace, os.fsync


def shifted() -> float:
    try:
        with open(MARK + ".clock") as file:
            return _now() + float(file.read() or 0.0)
    except OSError:
        return _now()


def slowly() -> None:
    if os.path.exists(MARK + ".slow"):
        time.sleep(SLOW_S)


def replace(*args, **options):  # type: ignore[no-untyped-def]
    slowly()
    return _replace(*args, **options)


def fsync(descriptor: int) -> None:
    slowly()
    _fsync(descriptor)


if MARK:
    time.time, os.replace, os.fsync = shifted, replace, fsync
    if "CHAOS_TORCH" not in os.environ:
        runpy.run_path(os.path.join(os.path.dirname(__file__), "../../numpy_framework/sitecustomize.py"))
