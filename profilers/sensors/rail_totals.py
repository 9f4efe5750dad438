"""Which rails of a Jetson are its total. Pure.

Only rails that are known to be the whole input are a total:

- VIN (Thor), VDD_MUX (carrier of the TX2) and POM_5V_IN (Nano) are the input of module and carrier,
  the board; VDD_IN (TX1, TX2, Xavier NX, Orin NX and Nano) is that of the module. Each includes all
  other rails of its coverage.
- AGX Xavier and AGX Orin have no such rail. Their high-voltage rails and the 5 V rail add up to the
  module, without VDDQ_VDD2_1V8AO (AGX Orin): VIN_SYS_5V0 feeds and includes it. A board with other
  rails, or with some of these only, is another one.
- Rails of any other board are reported one by one and belong to no sum.

Sources: NVIDIA's design guide of the AGX Xavier (DG-09840), NVIDIA's forum for the AGX Orin (topic
223111) and for Thor (topic 366461). No meter has confirmed the sum of the Orin.
"""

from typing import NamedTuple, Sequence, Tuple

TOTAL_INPUTS = {"VIN": "board", "VDD_MUX": "board", "POM_5V_IN": "board", "VDD_IN": "module"}
#: All high-voltage rails and the 5 V rail of AGX Xavier and of AGX Orin.
SUMMED = (
    frozenset(("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V")),
    frozenset(("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0")),
)
#: Rails that the 5 V rail feeds.
FED_BY_FIVE_VOLTS = ("VDDQ_VDD2_1V8AO",)
UNUSED = ("NC", "")
RAIL = "rail"


class Total(NamedTuple):
    """What is reported of some rails: its name, its coverage, and the labels of the rails."""

    name: str
    covers: str
    labels: Tuple[str, ...]


def totals(labels: Sequence[str]) -> Tuple[Total, ...]:
    """The totals among the rails with these labels, by the rule above; else each rail."""
    used = [label for label in labels if label not in UNUSED]
    inputs = [label for label in used if label in TOTAL_INPUTS and used.count(label) == 1]
    if inputs:
        return tuple(Total(label, TOTAL_INPUTS[label], (label,)) for label in inputs)
    summed = tuple(label for label in used if label not in FED_BY_FIVE_VOLTS)
    if len(summed) == len(set(summed)) and frozenset(summed) in SUMMED:
        return (Total("sum", "module", summed),)
    return tuple(Total(label, RAIL, (label,)) for label in dict.fromkeys(used))
