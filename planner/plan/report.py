"""A report is a recommendation as JSON or CSV, a row a cluster."""

from typing import Any

from backends.strategies.engine import OWN
from planner.plan.recommendation import Recommendation, Row
from planner.plan.texts import AUTO
from planner.provenance import Provenance
from profilers.records.json_values import json_value


def to_json(recommendation: Recommendation, top: int = 0) -> dict[str, Any]:
    """The ranking, best first, and what it rests on. top: clusters in it, 0 for all."""
    rows = recommendation.rows(top or len(recommendation))
    return {
        "metric": recommendation.metric,
        "model": recommendation.settings.model,
        **({} if recommendation.engine == OWN else {"engine": recommendation.engine}),
        "strategy": recommendation.inputs.strategy.as_text(),
        "frameworks": recommendation.frameworks,
        "ranking": [_row_json(row, recommendation.engine == AUTO) for row in rows],
        "notes": list(recommendation.notes),
        "details": list(recommendation.details),
        "left_out": recommendation.training.left_out,
        "offers": json_value(recommendation.training.offers),
    }


def to_csv(recommendation: Recommendation, top: int = 0) -> str:
    """The ranking as CSV text: a line a cluster, best first."""
    import pandas as pd  # takes most of a second, and only --csv needs it

    rows = to_json(recommendation, top)["ranking"]
    for row in rows:
        row["workers"] = " ".join(row["workers"])
        if "batches" in row:
            row["batches"] = " ".join(f"{name}={batch}" for name, batch in row["batches"].items())
        if "streams" in row:
            row["streams"] = "; ".join(f"{name}: {each['bound_by']}" for name, each in row["streams"].items())
        sources = ((name, Provenance(**source)) for name, source in row["power_sources"].items())
        row["power_sources"] = "; ".join(f"{name}: {source.text}" for name, source in sources)
    table = pd.json_normalize(rows)
    table[["low", "high"]] = table.pop("interval").tolist()
    return str(table.to_csv(index=False))


def _row_json(row: Row, with_engine: bool) -> dict[str, Any]:
    return {
        **({"engine": row.engine} if with_engine else {}),
        "workers": list(row.config.workers),
        "server": row.config.server,
        "time_s": row.prediction.time_s,
        "power_w": row.prediction.power_w,
        "energy_j": row.prediction.energy_j,
        "edp_js": row.prediction.edp_js,
        "interval": list(row.standing.interval),
        "tie": row.standing.tie,
        "energy_uncertainty": row.standing.energy_uncertainty,
        "provenance": json_value(row.provenance),
        "power_sources": {name: json_value(source) for name, source in row.power_sources.items()},
        "network_bytes": row.network_bytes,
        "bottleneck": row.bottleneck,
        "shares": row.shares,
        **({"batches": row.batches} if row.batches else {}),
        **({"streams": {name: json_value(each) for name, each in row.streams.items()}} if row.streams else {}),
    }
