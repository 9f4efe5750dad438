"""The result of an order is checked field by field; anything else is refused."""

from typing import Any

from backends.protocol import events, orders
from backends.training import run_orders
from planner.errors import AgentError, RecordError
from planner.json_records import decode
from profilers.records.device import Facts, SensorFacts
from profilers.records.links import LinkThroughput
from profilers.records.readings import StreamRate, Window
from profilers.records.steps import Repeat, StepProfile

#: By the class of the order; those that are not here return nothing.
RESULTS: dict[type, Any] = {
    orders.AssembleProject: str,
    orders.CollectFacts: Facts,
    orders.FindAddressTowards: str,
    orders.FindCache: events.CacheFolder,
    orders.FindFile: str | None,
    orders.FindFreePort: int,
    orders.FindInterfaceAddress: str | None,
    orders.FindMissing: tuple[str, ...],
    orders.FindPackages: dict[str, str | None],
    run_orders.HostRun: events.RunAccount,
    orders.ListCache: tuple[events.CacheEntry, ...],
    orders.MeasureCommand: events.CommandMeasurement,
    orders.MeasureIdle: Window,
    orders.ProbeReachability: str | None,
    orders.ReadClock: float,
    orders.RemoveEntries: dict[str, str],
    orders.RepeatSteps: Repeat,
    run_orders.RunPeer: events.MemberAccount,
    orders.RunScript: int,
    run_orders.RunWorker: events.MemberAccount,
    orders.SendMessages: events.MessageTimes,
    orders.SendThroughput: LinkThroughput,
    orders.StartFramework: dict[str, str],
    orders.StoreFile: str,
    orders.SurveyData: events.FolderContent,
    orders.SurveySensors: tuple[SensorFacts, ...],
    orders.TimeSteps: StepProfile,
    run_orders.TrainAlone: events.RunAccount,
    orders.WatchStream: StreamRate,
}


def read(order: Any, value: object, what: str) -> Any:
    """The result of an order in a JSON value. Raises AgentError naming what does not fit.

    what: the device and the order, for the message.
    """
    kind = _kind(order)
    if kind is None:
        return None
    try:
        return decode(kind, value, "result")
    except RecordError as error:
        reason = f"{what} returns what no agent would: {error}; is it the agent that planner started?"
        raise AgentError(reason) from error


def _kind(order: Any) -> Any:
    if isinstance(order, run_orders.RunRank):  # the first one hosts the run
        is_first = order.member.name == order.names[0]
        return events.RunAccount if is_first else events.MemberAccount
    return RESULTS.get(type(order))
