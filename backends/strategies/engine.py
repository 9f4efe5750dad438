"""An engine moves the gradients of a run: the planner's own, or torch.distributed.

It is written NAME or NAME:key=value,..., as in ``torch:hook=powersgd,rank=2``.
"""

from typing import Any, Callable, Dict, NamedTuple

from backends.strategies.name_and_options import name_of, options_of, typed, whole_from, word_of

OWN, TORCH = "planner", "torch"
#: How torch.distributed may change gradients on their way, by hooks that torch itself brings.
HOOKS = ("none", "bf16", "fp16", "powersgd")
BACKENDS = ("auto", "gloo", "nccl")
#: Batches as planned, or as many samples as a stream delivers in a second.
BATCHINGS = ("fixed", "stream")
#: What members share among them: nothing, or parameters, gradients and what the optimizer keeps.
SHARDS = ("none", "full")


class Engine(NamedTuple):
    """An engine with its options, and the ``text`` as which it is stored and sent.

    hook: one of HOOKS.
    rank: of PowerSGD's matrices; ``start``: the rounds that are made before PowerSGD begins.
    backend: of torch.distributed; auto for NCCL where every member has it and a GPU of its own,
        else gloo.
    batching: one of BATCHINGS. With ``stream`` gradients are weighed by rates, as in ScaDLES.
    shard: one of SHARDS; ``full`` is FSDP2 (torch.distributed.fsdp.fully_shard), ZeRO's stage 3.
    """

    name: str = OWN
    hook: str = "none"
    rank: int = 1
    start: int = 1000
    backend: str = "auto"
    batching: str = "fixed"
    shard: str = "none"
    text: str = OWN

    @property
    def is_sharded(self) -> bool:
        """Whether each member holds a share of the model, and gathers the rest block by block."""
        return self.shard == "full"

    def as_text(self) -> str:
        """The text for files and orders."""
        return self.text

    @classmethod
    def from_text(cls, text: str) -> "Engine":
        """Parse ``NAME:key=value,...``. Raises ValueError for an unknown name, key or value."""
        name = name_of("engine", text, (OWN, TORCH))
        readers = _READERS if name == TORCH else {}
        options = options_of(text, tuple(readers))
        values = typed("engine %s" % name, options, readers)
        hook = values.get("hook", "none")
        for key in ("rank", "start"):
            if key in values and hook != "powersgd":
                raise ValueError("%s: %s belongs to hook=powersgd; leave it out, or add the hook" % (text, key))
        if values.get("shard") == "full" and hook != "none":
            raise ValueError("%s: shard=full sends gradients as they are; leave hook=%s out" % (text, hook))
        return cls(name=name, text=text, **values)


#: The planner's own.
OWN_ENGINE = Engine()


#: PowerSGD's own least start is 2: torch rebuilds its buckets in the first round.
_READERS: Dict[str, Callable[[str], Any]] = {
    "hook": word_of(HOOKS),
    "rank": whole_from(1),
    "start": whole_from(2),
    "backend": word_of(BACKENDS),
    "batching": word_of(BATCHINGS),
    "shard": word_of(SHARDS),
}
