"""A profile as JSON: what was measured of each device and link; the raw samples are in its file."""

from pathlib import Path
from typing import Any

from planner.predict.watts import wattage
from planner.profile.file import DeviceProfile, Profile
from planner.profile.power_readings import uncertainty
from planner.views.profile import details, notes
from planner.views.profile_tables import known, mean, median, memory_figures
from profilers.records.json_values import json_value
from profilers.records.steps import StepProfile


def to_json(profile: Profile, path: Path) -> dict[str, Any]:
    """{"profile", "took_s", "devices": {name: {"error", "failures", "timings": [...]}}, "links",
    "link_errors", "notes", "details"}.
    """
    return {
        "profile": str(path),
        "took_s": profile.profiling_s(),
        "devices": {
            name: {
                "error": device.error,
                "failures": device.failures,
                "timings": [_timed_json(device, timed) for timed in device.steps],
                **({"streams": json_value(device.streams)} if device.streams else {}),
            }
            for name, device in profile.devices.items()
        },
        "links": [
            {
                "source": link.source,
                "target": link.target,
                "tool": link.tool,
                "bytes_per_s": median(link.bytes_per_s.values),
                "latency_s": median(link.latency_s.values),
            }
            for link in profile.links
        ],
        "link_errors": profile.link_errors,
        "notes": notes(profile),
        "details": details(profile),
    }


def _timed_json(device: DeviceProfile, timed: StepProfile) -> dict[str, Any]:
    found = wattage(device, timed)
    return {
        "model": timed.model,
        "framework": timed.framework,
        "batch": timed.batch,
        "slowdown": timed.setup.slowdown,
        "gradient_s": mean(timed.gradient_s.values),
        "update_s": mean(timed.update_s.values),
        "build_s": timed.costs.build_s,
        "steady": timed.setup.steady,
        "precise": timed.setup.precise,
        **({} if timed.memory is None else {"memory": {**json_value(timed.memory), **memory_figures(device, timed)}}),
        "idle_w": known(found.idle_w),
        "busy_w": known(found.busy_w),
        "idle_uncertainty": uncertainty(found.idle_error),
        "busy_uncertainty": uncertainty(found.busy_error),
        "provenance": json_value(found.provenance),
        "sampling_share": timed.window.cpu_share,
    }
