"""What an agent can be asked to do: verb -> function(job, **args) returning something JSON can carry, or bytes."""

import time
from typing import Any, Callable, Dict, Sequence

from backends.agent import command, files, roles
from backends.frameworks.base import FRAMEWORKS, framework
from backends.profiling import message_probe, step_profile, throughput
from profilers import addresses, reach
from profilers import facts as device_facts
from profilers.records import encode
from profilers.sampling import Sampler
from profilers.sensors import character

KNOWN = tuple(sorted(FRAMEWORKS))


def facts(job: Any, frameworks: Sequence[str] = KNOWN) -> Any:
    """What this device is."""
    return encode(device_facts.collect(frameworks))


def sensors(job: Any) -> Any:
    """Power sensors, each watched for two seconds."""
    return encode(character.survey())


def start_framework(job: Any, name: str) -> Dict[str, str]:
    """Import a framework and say what it computes on."""
    backend = framework(name)
    kind, device = backend.accelerator()
    return {"version": backend.version(), "accelerator": kind, "device": device}


def idle(job: Any, seconds: float) -> Any:
    """Counters and sensors while nothing runs here."""
    sampler = Sampler()
    sampler.start()
    job.stopping.wait(seconds)
    return encode(sampler.stop())


def steps(job: Any, **args: Any) -> Any:
    """See pretrain.steps."""
    return encode(step_profile.steps(job, **args))


def steps_again(job: Any, **args: Any) -> Any:
    """See pretrain.again."""
    return encode(step_profile.again(job, **args))


def clock(job: Any) -> float:
    """Seconds since the epoch, by this device."""
    return time.time()


VERBS: Dict[str, Callable[..., Any]] = {
    "address_towards": addresses.address_towards,
    "alone": roles.alone,
    "clock": clock,
    "conduct": roles.conduct,
    "curve_send": message_probe.curve_send,
    "curve_serve": message_probe.curve_serve,
    "facts": facts,
    "fetch": files.fetch,
    "idle": idle,
    "interface_address": addresses.interface_address,
    "join": roles.join,
    "knock": reach.knock,
    "listen": reach.listen,
    "measure": command.measure,
    "remove": files.remove,
    "sensors": sensors,
    "serve": roles.serve,
    "start_framework": start_framework,
    "steps": steps,
    "steps_again": steps_again,
    "store": files.store,
    "stored": files.stored,
    "throughput_send": throughput.send,
    "throughput_serve": throughput.serve,
    "work": roles.work,
}
