"""Provenance states where watts and joules come from and what of a device they cover. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from profilers.records.readings import MODEL, UNAVAILABLE

COUNTER, SENSOR, NAMEPLATE = "counter", "sensor", "nameplate"
#: The most trusted first; a model's watts are estimated, a nameplate's declared in the fleet file.
KINDS = (COUNTER, SENSOR, MODEL, NAMEPLATE, UNAVAILABLE)
#: What a model of the fleet file covers: the device, as far as the operator knows.
STATED = "device"
#: Places whose sensors cover the whole device, best first.
WHOLE = ("wall", "board", "module", STATED)
#: Places that are a part of a device. Several GPUs or processors add up.
PARTS = ("gpu", "cpu")
AT_BUSY_SHARE = "at the measured busy share"

_NOUNS = {COUNTER: "energy counter", SENSOR: "integrated sensor", MODEL: "power model", NAMEPLATE: "nameplate"}
_PLACES = {"wall": "wall plug", "board": "board", "module": "module", STATED: "device", "gpu": "GPU", "cpu": "CPU"}


class Provenance(NamedTuple):
    """The source of watts or joules.

    kind: one of KINDS; covers: places that are counted, of WHOLE and PARTS.
    emulated: whether the device is.
    detail: what else to know, or why there are none.
    """

    kind: str
    covers: tuple[str, ...] = ()
    emulated: bool = False
    detail: str = ""

    @property
    def partial(self) -> bool:
        return any(part in PARTS for part in self.covers)

    @property
    def text(self) -> str:
        """Words for it: ``integrated sensor of the module, emulated (slowdown 4)``."""
        if self.kind == UNAVAILABLE:
            return self.kind
        text = _NOUNS.get(self.kind, self.kind)
        if self.covers and self.kind != NAMEPLATE:
            text += f" of the {' and '.join(_PLACES.get(part, part) for part in self.covers)}{' only' * self.partial}"
        return text + ", emulated" * self.emulated + f" ({self.detail})" * bool(self.detail)

    def noting(self, detail: str) -> "Provenance":
        return self._replace(detail=", ".join(filter(None, (self.detail, detail))))

    @classmethod
    def joined(cls, parts: Iterable["Provenance"]) -> "Provenance":
        """The provenance of a sum, whose kind is that of its weakest part. ValueError: no parts."""
        known = list(parts)
        kinds = sorted({part.kind for part in known}, key=KINDS.index)
        if not kinds:
            raise ValueError("a sum of nothing comes from nowhere")
        covers = tuple(place for place in (*WHOLE, *PARTS) if any(place in part.covers for part in known))
        details = dict.fromkeys(part.detail for part in known if part.detail)
        made = cls(kinds[-1], covers, any(part.emulated for part in known), "; ".join(details))
        return made.noting(f"in part {', '.join(kinds[:-1])}") if len(kinds) > 1 else made

    @classmethod
    def of_sensors(cls, sources: Iterable[str], covers: Iterable[str]) -> "Provenance":
        """The provenance of several sensors, whose sources are as in ``PowerReading``."""
        known = set(sources)
        kind = MODEL if MODEL in known else COUNTER if known == {COUNTER} else SENSOR
        return cls(kind, tuple(covers))
