"""Presets name the methods of the papers; each combines parts by their names."""

from typing import Dict, NamedTuple

#: The strategy of a plan that names none.
DEFAULT = "parameter-server"
#: The one without a server that comes nearest to it, with any optimizer.
SERVERLESS = "allreduce"


class Parts(NamedTuple):
    """The parts of a strategy as texts.

    All but batching, aggregation and knowledge may have options, as in ``NAME:key=value,...``.
    """

    compressor: str
    topology: str
    sync: str
    batching: str = "fixed"
    aggregation: str = "mean"
    knowledge: str = "none"
    optimizer: str = "sgd"
    local: str = "none"
    outer: str = "average"


#: The sync of gaia and ako: DLion, section 5.2.5. Crossover-SGD is compared with optimizer=lars
#: at large batches.
PRESETS: Dict[str, Parts] = {
    "parameter-server": Parts("dense", "server", "asynchronous"),
    "layer-drop": Parts("layer-drop", "server", "synchronous"),
    "baseline": Parts("dense", "all", "synchronous"),
    "dlion": Parts("max-n", "all", "synchronous", "dynamic", "weighted", "best-to-all"),
    "ako": Parts("ako", "all", "asynchronous"),
    "gaia": Parts("gaia", "all", "synchronous"),
    "hop": Parts("dense", "all", "backup"),
    "allreduce": Parts("dense", "ring", "synchronous"),
    "sgp": Parts("dense", "exponential", "synchronous", aggregation="push-sum"),
    "crossover": Parts("dense", "random", "synchronous", aggregation="average"),
    "crossover-hierarchical": Parts("dense", "groups", "synchronous", aggregation="average"),
    "ad-psgd": Parts("dense", "pairs", "asynchronous", aggregation="pairwise"),
    "scadles": Parts("adaptive", "all", "synchronous", "stream", "rates"),
    "local-sgd": Parts("dense", "ring", "synchronous", aggregation="samples", local="time"),
    "diloco": Parts("dense", "ring", "synchronous", aggregation="samples", local="time", outer="nesterov"),
    "async-diloco": Parts(
        "dense", "server", "asynchronous", aggregation="samples", local="speed", outer="delayed-nesterov"
    ),
}

#: A line for each preset, for ``--help``.
DESCRIPTIONS: Dict[str, str] = {
    "parameter-server": "workers send gradients to a server and wait for nobody (asynchronous SGD)",
    "layer-drop": "a synchronous server; layers with small gradients are sent later (Lee et al., 2020)",
    "baseline": "every worker sends its whole gradient to every other, synchronously (DLion's baseline)",
    "dlion": "all to all; the largest gradients as each link allows, batches by speed (DLion, 2021)",
    "ako": "all to all; one block of the gradient in turn, asynchronously (Ako, 2016)",
    "gaia": "all to all; only gradients that change a weight by 1 % or more (Gaia, 2017)",
    "hop": "all to all; a step does not wait for the last worker (Hop, 2019)",
    "allreduce": "the sum of all gradients, around a ring (Patarasuk and Yuan, 2009)",
    "sgp": "gossip of weights on an exponential graph, averaged by push-sum (SGP, 2019)",
    "crossover": "gossip of weights, each segment with a random peer (Crossover-SGD, Yeo et al.)",
    "crossover-hierarchical": "groups sum their gradients, leaders gossip weights (Crossover-SGD)",
    "ad-psgd": "random pairs average their weights, asynchronously (AD-PSGD, 2018)",
    "scadles": "all to all; batches and weights by the rates of data streams (ScaDLES)",
    "local-sgd": "rounds of local steps, as many as each has time for; mean around a ring (2019)",
    "diloco": "the same; the mean change of a round is a step with Nesterov momentum (2023)",
    "async-diloco": "local steps by speed; a server with delayed Nesterov waits for nobody (2024)",
}

#: Other common names of these methods.
ALIASES: Dict[str, str] = {
    "ring": "allreduce",
    "ring-allreduce": "allreduce",
    "all-reduce": "allreduce",
    "ps": "parameter-server",
    "async-ps": "parameter-server",
    "sync-ps": "parameter-server:sync=synchronous",
}
