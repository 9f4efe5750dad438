"""Orders to an agent that begin its part in a run: to host it, or to be one of its members."""

from typing import NamedTuple, Tuple

from backends.frameworks.optimizer import OptimizerSettings
from backends.protocol.member_specs import HostAddress, Identity, MemberSpec
from backends.training.run_settings import RunSettings
from backends.training.run_spec import RunSpec
from backends.training.step_watch import FIRST_S


class HostRun(NamedTuple):
    """Be the host of a run: its parameter server, or the coordinator of its peers."""

    address: str
    identity: Identity
    spec: RunSpec


class RunWorker(NamedTuple):
    """Be a worker of a parameter server."""

    member: MemberSpec
    host: HostAddress
    run: RunSettings
    optimizer: OptimizerSettings  # of the worker's own steps, in rounds of them
    correction: float  # momentum at the worker, for compressors with a residual


class RunPeer(NamedTuple):
    """Be a peer."""

    member: MemberSpec
    host: HostAddress
    run: RunSettings
    optimizer: OptimizerSettings
    listens_on: str  # its address for other peers
    topology_seed: int  # seed of the random choices that all peers make alike
    wait_s: float = FIRST_S  # that an exchange may take in any case


class RunRank(NamedTuple):
    """Be a rank of a run whose framework exchanges the gradients; the first is also its host."""

    member: MemberSpec
    spec: RunSpec  # of another than the first without paths of checkpoints
    names: Tuple[str, ...]  # of all ranks, in order
    address: str  # of this device, whose interface carries the exchange
    store_address: str  # of the first rank
    store_port: int = 0  # which the first rank chooses and emits
    wait_s: float = FIRST_S  # longest wait for the others at one place


class TrainAlone(NamedTuple):
    """Be a cluster of one device."""

    member: MemberSpec
    spec: RunSpec
