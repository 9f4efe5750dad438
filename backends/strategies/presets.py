"""The methods of the papers by name, put together from parts by name; what does not go together is refused."""

from typing import Dict, NamedTuple, Tuple

SENDERS = ("everything", "float16", "layer-drop", "max-n", "ako", "gaia", "top-k", "adaptive")
TOPOLOGIES = ("server", "all", "ring", "random", "exponential", "pairs", "groups")
GATES = ("synchronous", "asynchronous", "bounded", "backup")
BATCHINGS = ("fixed", "dynamic", "stream")
MERGES = ("mean", "weighted", "samples", "rates", "average", "push-sum", "pairwise")
TRANSFERS = ("none", "best-to-all", "best-to-worst")
OPTIMISERS = ("sgd", "lars")


class Strategy(NamedTuple):
    """One name for each question, of those in ``PARTS``; sender, topology and gate may be ``NAME:key=value,...``."""

    sender: str
    topology: str
    gate: str
    batching: str = "fixed"
    merge: str = "mean"
    knowledge: str = "none"
    optimiser: str = "sgd"


PARTS = {
    "sender": SENDERS,
    "topology": TOPOLOGIES,
    "gate": GATES,
    "batching": BATCHINGS,
    "merge": MERGES,
    "knowledge": TRANSFERS,
    "optimiser": OPTIMISERS,
}

#: Gates of gaia and ako: DLion, section 5.2.5. What Crossover-SGD compares trains large batches with optimiser=lars.
PRESETS: Dict[str, Strategy] = {
    "parameter-server": Strategy("everything", "server", "asynchronous"),
    "layer-drop": Strategy("layer-drop", "server", "synchronous"),
    "baseline": Strategy("everything", "all", "synchronous"),
    "dlion": Strategy("max-n", "all", "synchronous", "dynamic", "weighted", "best-to-all"),
    "ako": Strategy("ako", "all", "asynchronous"),
    "gaia": Strategy("gaia", "all", "synchronous"),
    "hop": Strategy("everything", "all", "backup"),
    "allreduce": Strategy("everything", "ring", "synchronous"),
    "sgp": Strategy("everything", "exponential", "synchronous", merge="push-sum"),
    "crossover": Strategy("everything", "random", "synchronous", merge="average"),
    "crossover-hierarchical": Strategy("everything", "groups", "synchronous", merge="average"),
    "ad-psgd": Strategy("everything", "pairs", "asynchronous", merge="pairwise"),
    "scadles": Strategy("adaptive", "all", "synchronous", "stream", "rates"),
}

#: Parts whose names may have options after them, which their own modules read.
_WITH_OPTIONS = ("sender", "topology", "gate")

_WHOLE = ("everything", "float16")
_SCALED_LATER = tuple(name for name in SENDERS if name != "gaia")
_IN_STEP = ("synchronous",)
_NO_TRANSFER = ("none",)

#: For a part and its name, and another part: the names it goes with, where not with all, and why with no others.
FITS: Dict[Tuple[str, str], Dict[str, Tuple[Tuple[str, ...], str]]] = {
    ("topology", "server"): {
        "merge": (("mean", "weighted", "samples", "rates"), "gradients travel, not weights"),
        "knowledge": (_NO_TRANSFER, "every worker takes the server's weights"),
    },
    ("topology", "all"): {
        "merge": (("mean", "weighted", "samples", "rates"), "gradients travel, not weights"),
    },
    ("topology", "ring"): {
        "sender": (_WHOLE, "chunks are summed on their way round, and what is left out of one would be missing there"),
        "gate": (_IN_STEP, "nobody has the sum before everybody has added to it"),
        "merge": (("mean", "rates"), "gradients travel, and every worker gets one and the same sum of them"),
        "knowledge": (_NO_TRANSFER, "all workers have the same weights"),
    },
    ("topology", "random"): {
        "sender": (_WHOLE, "weights travel, and what is left out of them would count as zero"),
        "merge": (("average",), "weights travel, and each worker gets as many as it sends"),
        "knowledge": (_NO_TRANSFER, "a worker hears of few others at a time, and cannot tell who is the best"),
    },
    ("topology", "pairs"): {
        "sender": (("everything",), "weights travel, and what is left out of them would count as zero"),
        "merge": (("pairwise",), "both of a pair get their mean"),
        "knowledge": (_NO_TRANSFER, "a worker hears of few others at a time, and cannot tell who is the best"),
    },
    ("topology", "exponential"): {
        "sender": (("everything",), "what is rounded or left out would be lost to the sums that push-sum conserves"),
        "gate": (("synchronous", "asynchronous", "bounded"), "a share that is not waited for must still be taken in"),
        "merge": (("push-sum",), "weights travel one way, and only push-sum makes up for uneven shares"),
        "knowledge": (_NO_TRANSFER, "weights taken over would break the sums that push-sum conserves"),
    },
    ("topology", "groups"): {
        "sender": (_WHOLE, "leaders pass on sums and weights, and what is left out would count as zero"),
        "gate": (_IN_STEP, "a leader waits for its whole group"),
        "merge": (("mean", "average", "push-sum"), "a leader has the mean of its group, whatever their batches"),
        "knowledge": (_NO_TRANSFER, "all of a group have the same weights"),
    },
    ("merge", "average"): {
        "gate": (_IN_STEP, "every step draws anew whose weights each worker waits for"),
    },
    ("merge", "pairwise"): {
        "gate": (("asynchronous",), "two average whenever one of them asks, and nobody else waits"),
    },
    ("merge", "rates"): {
        "batching": (("stream",), "workers are weighed by the rates of their streams"),
    },
    ("optimiser", "lars"): {
        "sender": (_SCALED_LATER, "what is significant depends on how far a weight moves, which LARS settles later"),
    },
}


def strategy(text: str) -> Strategy:
    """The strategy of "NAME" or "NAME:part=value,part=value", whose parts override those of the preset NAME.

    A sender, topology or gate may have options, as in "dlion:sender=top-k:share=0.01,gate=bounded:staleness=3": what
    follows it and is no part belongs to it too, and is read by its own module. Raises ValueError for a name, part or
    value that is unknown, a part given twice, and as ``checked`` does.
    """
    name, colon, rest = text.partition(":")
    if name not in PRESETS:
        raise ValueError("unknown strategy %r; known: %s" % (name, ", ".join(PRESETS)))
    chosen: Dict[str, str] = {}
    last = ""
    for item in rest.split(",") if colon else ():
        part, equals, value = item.partition("=")
        if part in PARTS and equals:
            if part in chosen:
                raise ValueError("strategy %s: %s is given twice" % (name, part))
            chosen[part] = value
            last = part
        elif equals and ":" in chosen.get(last, ""):
            chosen[last] += "," + item
        else:
            raise ValueError("strategy %s: %r is not part=value with a part of %s" % (name, item, ", ".join(PARTS)))
    return checked(PRESETS[name]._replace(**chosen))


def checked(chosen: Strategy) -> Strategy:
    """The same strategy. Raises ValueError for an unknown name, and where parts do not go together, saying why."""
    names = {part: _name(part, text) for part, text in chosen._asdict().items()}
    for part, name in names.items():
        if name not in PARTS[part]:
            raise ValueError("unknown %s %r; known: %s" % (part, name, ", ".join(PARTS[part])))
    for part, name in names.items():
        for other, (fitting, why) in FITS.get((part, name), {}).items():
            if names[other] not in fitting:
                raise ValueError(
                    "%s %s does not go with %s %s, because %s; it goes with %s"
                    % (part, name, other, names[other], why, ", ".join(fitting))
                )
    if names["topology"] == "groups":
        # What leaders exchange has to go together as if they were alone; by default they gossip.
        between = chosen.topology.partition("between=")[2] or "random"
        if _name("topology", between) == "server":
            raise ValueError("topology groups does not go between=server: leaders have no server; let them be a ring")
        checked(chosen._replace(topology=between))
    return chosen


def _name(part: str, text: str) -> str:
    return text.partition(":")[0] if part in _WITH_OPTIONS else text
