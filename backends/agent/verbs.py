"""The agent carries out each kind of order with one function.

A function takes its task and the order, and returns a JSON value, a record or bytes.
"""

import gc
import time
from typing import Any, Callable, Dict, Type

from backends.agent import command, files, leftovers, projects, rank_role, roles, script
from backends.data import folder_content
from backends.frameworks.base import FRAMEWORKS, framework
from backends.profiling import message_probe, step_profile, stream_rate, throughput
from backends.protocol import orders
from backends.training import run_orders
from profilers import addresses_and_ports, device_facts
from profilers.process_memory import release_freed
from profilers.records.device import Facts
from profilers.sampling import Sampler
from profilers.sensors import characteristics


def collect_facts(task: Any, order: orders.CollectFacts) -> Facts:
    """What this device is."""
    return device_facts.collect(tuple(sorted(FRAMEWORKS)) if order.frameworks is None else order.frameworks)


def start_framework(task: Any, order: orders.StartFramework) -> Dict[str, str]:
    """Import a framework; its version, what it computes on, and what its collectives are."""
    backend = framework(order.name)
    kind, device = backend.accelerator()
    collectives = ", ".join(backend.collectives())
    return {"version": backend.version(), "accelerator": kind, "device": device, "collectives": collectives}


def measure_idle(task: Any, order: orders.MeasureIdle) -> Any:
    """Counters and sensors while nothing runs here."""
    sampler = Sampler()
    sampler.start()
    task.stopping.wait(order.seconds)
    return sampler.stop()


def freeing(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The verb, which leaves no model in memory: what comes next may need as much."""

    def obey(task: Any, order: Any) -> Any:
        try:
            return verb(task, order)
        finally:
            gc.collect()  # a replica and its module refer to each other
            release_freed()

    return obey


ORDERS: Dict[Type[Any], Callable[..., Any]] = {
    orders.AssembleProject: projects.assemble,
    orders.AwaitReachability: lambda task, order: addresses_and_ports.await_connections(task, order.address),
    orders.CollectFacts: collect_facts,
    orders.FetchFile: lambda task, order: files.FileContent(order.path),
    orders.FindAddressTowards: lambda task, order: addresses_and_ports.address_towards(task, order.target),
    orders.FindCache: leftovers.find_cache,
    orders.FindFile: lambda task, order: files.find(order.name, order.digest),
    orders.FindFreePort: lambda task, order: addresses_and_ports.free_port(),
    orders.FindPackages: lambda task, order: device_facts.package_versions(order.names),
    orders.FindMissing: projects.find_missing,
    orders.FindInterfaceAddress: lambda task, order: addresses_and_ports.interface_address(task, order.interface),
    run_orders.HostRun: roles.host_run,
    orders.ListCache: leftovers.list_entries,
    orders.ProbeReachability: lambda task, order: addresses_and_ports.probe_port(task, *order),
    orders.MeasureCommand: command.measure,
    orders.MeasureIdle: measure_idle,
    orders.ReadClock: lambda task, order: time.time(),
    orders.RemoveEntries: leftovers.remove_entries,
    orders.RemoveFile: lambda task, order: files.remove(order.path),
    orders.RepeatSteps: freeing(step_profile.repeat_steps),
    run_orders.RunPeer: roles.run_peer,
    run_orders.RunRank: rank_role.run_rank,
    orders.RunScript: script.run_script,
    run_orders.RunWorker: roles.run_worker,
    orders.SendMessages: message_probe.send,
    orders.SendThroughput: throughput.send,
    orders.ServeMessages: message_probe.serve,
    orders.ServeThroughput: throughput.serve,
    orders.StartFramework: start_framework,
    orders.StoreFile: lambda task, order, data: files.store(order.name, data),
    orders.SurveyData: lambda task, order: folder_content.survey(order.path),
    orders.SurveySensors: lambda task, order: characteristics.survey(),
    orders.TimeSteps: freeing(step_profile.time_steps),
    run_orders.TrainAlone: roles.train_alone,
    orders.WatchStream: stream_rate.watch_stream,
}
