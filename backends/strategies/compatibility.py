"""Compatibility of a strategy's parts is checked here; a refusal states the reason."""

from typing import Dict, Sequence, Tuple

from backends.frameworks.optimizer import ADAM, ADAMW, DELAYED_NESTEROV, LARS, OPTIMIZERS, OWN
from backends.strategies.compressors.registry import COMPRESSORS
from backends.strategies.local_updates import LOCAL, OUTER, LocalSpec
from backends.strategies.name_and_options import name_of, one_of
from backends.strategies.presets import Parts
from backends.strategies.synchronisation import SYNC_POLICIES
from backends.strategies.topologies.registry import TOPOLOGIES, TopologySpec

#: All names of each part.
PARTS: Dict[str, Sequence[str]] = {
    "compressor": tuple(COMPRESSORS),
    "topology": tuple(TOPOLOGIES),
    "sync": tuple(SYNC_POLICIES),
    "batching": ("fixed", "dynamic", "stream"),
    "aggregation": ("mean", "weighted", "samples", "rates", "average", "push-sum", "pairwise"),
    "knowledge": ("none", "best-to-all", "best-to-worst"),
    "optimizer": OPTIMIZERS,
    "local": LOCAL,
    "outer": OUTER,
}

#: Parts whose names may have options after them.
WITH_OPTIONS = ("compressor", "topology", "sync", "optimizer", "local", "outer")

_WHOLE = ("dense", "float16")
_SCALED_LATER = tuple(name for name in COMPRESSORS if name != "gaia")
_IN_STEP = ("synchronous",)
_NO_TRANSFER = ("none",)
#: Tang et al., 1-bit Adam, 2021, section 3.
_HELD_BACK = "what a compressor holds back comes later as one large gradient, by which Adam would shrink its steps"
_SERVERLESS = tuple(name for name in TOPOLOGIES if name != "server")
_SERVER_HAS_NO_JOB = "a server adds gradients up and does not run the job's code"
#: What goes with rounds of several steps.
_ROUNDS: Dict[str, Tuple[Tuple[str, ...], str]] = {
    "topology": (("server", "all", "ring", "groups"), "members send the change of a round, as they send gradients"),
    "batching": (("fixed",), "a round has many steps already, as many as suit each member"),
    "aggregation": (("mean", "samples"), "the change of a round counts as a gradient"),
    "knowledge": (_NO_TRANSFER, "all take the same step after a round"),
    "optimizer": (tuple(name for name in OPTIMIZERS if name != LARS), "the framework makes a round's steps itself"),
}

#: By part and name, and another part: the names that it is compatible with, where not with all, and
#: the reason why not with others.
FITS: Dict[Tuple[str, str], Dict[str, Tuple[Tuple[str, ...], str]]] = {
    ("topology", "server"): {
        "aggregation": (("mean", "weighted", "samples", "rates"), "gradients travel, not weights"),
        "knowledge": (_NO_TRANSFER, "every worker takes the server's weights"),
    },
    ("topology", "all"): {
        "aggregation": (("mean", "weighted", "samples", "rates"), "gradients travel, not weights"),
    },
    ("topology", "ring"): {
        "compressor": (_WHOLE, "chunks are summed on their way round, so nothing may be left out of one"),
        "sync": (_IN_STEP, "the sum is known only when every worker has added to it"),
        "aggregation": (("mean", "samples", "rates"), "gradients travel, and all workers get the same sum of them"),
        "knowledge": (_NO_TRANSFER, "all workers have the same weights"),
    },
    ("topology", "random"): {
        "compressor": (_WHOLE, "weights travel, and what is left out of them would count as zero"),
        "aggregation": (("average",), "weights travel, and each worker gets as many as it sends"),
        "knowledge": (_NO_TRANSFER, "a worker exchanges with few others at a time, and cannot tell which is the best"),
    },
    ("topology", "pairs"): {
        "compressor": (("dense",), "weights travel, and what is left out of them would count as zero"),
        "aggregation": (("pairwise",), "both of a pair get their mean"),
        "knowledge": (_NO_TRANSFER, "a worker exchanges with few others at a time, and cannot tell which is the best"),
    },
    ("topology", "exponential"): {
        "compressor": (("dense",), "push-sum conserves sums, which rounding or leaving out would change"),
        "sync": (("synchronous", "asynchronous", "bounded"), "push-sum must add every share that was sent"),
        "aggregation": (("push-sum",), "weights travel one way, and only push-sum corrects for uneven shares"),
        "knowledge": (_NO_TRANSFER, "push-sum conserves sums, which copied weights would change"),
    },
    ("topology", "groups"): {
        "compressor": (_WHOLE, "leaders send sums and weights, and what is left out would count as zero"),
        "sync": (_IN_STEP, "a leader waits for its whole group"),
        "aggregation": (("mean", "average", "push-sum"), "a leader takes the mean of its group, whatever the batches"),
        "knowledge": (_NO_TRANSFER, "all of a group have the same weights"),
    },
    ("aggregation", "average"): {
        "sync": (_IN_STEP, "every step draws at random from whom each worker waits for weights"),
    },
    ("aggregation", "pairwise"): {
        "sync": (("asynchronous",), "two workers average whenever one asks the other, and no others wait"),
    },
    ("aggregation", "rates"): {
        "batching": (("stream",), "workers are weighed by the rates of their streams"),
    },
    ("optimizer", "lars"): {
        "compressor": (_SCALED_LATER, "Gaia sends by how far weights move, which LARS scales only afterwards"),
    },
    ("optimizer", ADAM): {"compressor": (_WHOLE, _HELD_BACK)},
    ("optimizer", ADAMW): {"compressor": (_WHOLE, _HELD_BACK)},
    ("optimizer", OWN): {"compressor": (_WHOLE, _HELD_BACK), "topology": (_SERVERLESS, _SERVER_HAS_NO_JOB)},
    ("local", "none"): {"outer": (("average",), "an outer step needs rounds, such as local=time:seconds=2")},
    ("local", "steps"): _ROUNDS,
    ("local", "time"): _ROUNDS,
    ("local", "speed"): _ROUNDS,
    ("compressor", "sparse-loco"): {
        "topology": (("server",), "what it forgets a worker would still have in its own weights, and nobody else"),
    },
    ("compressor", "ef21"): {
        "topology": (("server",), "receivers must know all that each sender has sent, and only a server does"),
    },
    ("outer", DELAYED_NESTEROV): {
        "topology": (("server",), "it is for a server whose workers do not wait"),
        "sync": (("asynchronous", "bounded"), "it is for a server whose workers do not wait"),
    },
}


def check(parts: Parts) -> Parts:
    """Return the parts. Raises ValueError for an unknown name or incompatible parts."""
    names = {
        part: (name_of if part in WITH_OPTIONS else one_of)(part, text, PARTS[part])
        for part, text in parts._asdict().items()
    }
    for part, name in names.items():
        for other, (fitting, why) in FITS.get((part, name), {}).items():
            if names[other] not in fitting and not _is_inner(names, part, other):
                raise ValueError(
                    "%s %s excludes %s %s, because %s; possible with it: %s"
                    % (part, name, other, names[other], why, ", ".join(fitting))
                )
    if names["topology"] == "groups":
        _check_leaders(parts)
    if names["local"] != "none":
        _check_rounds(names)
        if names["optimizer"] == OWN and LocalSpec.from_text(parts.local).reset:
            raise ValueError("local %s excludes optimizer own: only the job's code can reset that" % parts.local)
    elif names["topology"] == "all" and names["optimizer"] in (ADAM, ADAMW, OWN):
        _check_same_sums(names)
    return parts


def _is_inner(names: Dict[str, str], part: str, other: str) -> bool:
    """Whether the optimizer makes the steps of a round, of which a compressor sees only the sum."""
    return names["local"] != "none" and (part, other) == ("optimizer", "compressor")


def _check_rounds(names: Dict[str, str]) -> None:
    """Peers exchange a round at its end, or all to all during the next one."""
    fitting = {"server": tuple(SYNC_POLICIES), "all": ("synchronous", "bounded")}.get(names["topology"], _IN_STEP)
    if names["sync"] not in fitting:
        raise ValueError(
            "local %s excludes sync %s with topology %s, because the members' weights would have no common start; "
            "possible with it: %s" % (names["local"], names["sync"], names["topology"], ", ".join(fitting))
        )


def _check_same_sums(names: Dict[str, str]) -> None:
    """Replicas that exchange nothing but gradients stay equal only if they add up the same.

    With SGD they also come to the same sum in another order; Adam's steps are no sums.
    """
    for part, fitting, why in (
        ("sync", _IN_STEP, "replicas that add gradients in another order would drift apart"),
        ("compressor", ("dense",), "a worker adds its own gradient unrounded, so that replicas would drift apart"),
    ):
        if names[part] not in fitting:
            raise ValueError(
                "optimizer %s excludes %s %s with topology all, because %s; possible with it: %s, or topology server"
                % (names["optimizer"], part, names[part], why, ", ".join(fitting))
            )


def _check_leaders(parts: Parts) -> None:
    """Check the exchange among the leaders of groups as a strategy of its own."""
    between = TopologySpec.from_text(parts.topology).between
    if between.name == "server":
        raise ValueError("topology groups excludes between=server: leaders have no server; choose a ring")
    check(parts._replace(topology=between.name))
