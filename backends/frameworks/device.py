"""A framework computes on the processor or a GPU, as the fleet file says or by its own choice."""

import os
from typing import Sequence

#: Variable of agents with ``device`` of the fleet file.
DEVICE_VARIABLE = "PLANNER_DEVICE"
CPU, CUDA, MPS = "cpu", "cuda", "mps"
#: How the remedy begins where the fleet file asks for what a framework has not.
REMEDY = "; set `device` in the fleet file"


def chosen(framework: str, able: Sequence[str]) -> str:
    """The kind that is asked for, else the first of these.

    able: kinds that a framework has here, the best first. Raises ValueError for another one.
    """
    asked = os.environ.get(DEVICE_VARIABLE) or able[0]
    if asked not in able:
        others = " or ".join('"%s"' % each for each in able)
        raise ValueError("%s has no %s here%s to %s, or remove it" % (framework, asked, REMEDY, others))
    return asked
