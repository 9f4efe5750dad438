"""The startup of a run lasts until agents run, frameworks are imported and data are handed out."""

from collections.abc import Mapping

from backends.strategies.engine import TORCH
from planner.plan.file import Plan


def startup_s(plan: Plan, sent_bytes: Mapping[str, int]) -> float | None:
    """Predicted seconds until all members are ready; None where one was not profiled for it.

    Agents start on all devices at once. Then members import their frameworks. Meanwhile one more
    agent starts on the host of an exchange of the planner's own, and files are sent.
    sent_bytes: of what members are sent, by name.
    """
    known = {
        worker.name: worker.startup
        for worker in plan.workers
        if worker.startup is not None and worker.framework in worker.startup.framework_s
    }
    if len(known) < len(plan.workers):
        return None
    has_host = len(plan.workers) > 1 and plan.run.engine.name != TORCH
    host_s = known[plan.server].agent_s if has_host else 0.0
    imported_s = max(each.framework_s[plan.frameworks[name]] for name, each in known.items())
    sent_s = max(sent_bytes.get(name, 0) / each.bytes_per_s for name, each in known.items())
    return max(each.agent_s for each in known.values()) + max(imported_s, host_s + sent_s)
