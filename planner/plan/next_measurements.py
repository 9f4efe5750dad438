"""A profile measures next that on which the order of a ranking's first rows depends most. Pure.

Where no other cluster ties with the best, it measures nothing more. Otherwise it measures the
estimated links of these clusters, those that most of them use before others, and then the device
among their workers whose gradient is known worst.
"""

from collections import Counter
from collections.abc import Sequence

from planner.errors import PlanError
from planner.plan.recommend import recommend
from planner.plan.recommendation import Recommendation, Row
from planner.predict.interval import RECORDED
from planner.predict.request import RecommendRequest
from planner.profile.file import Profile
from planner.profile.measurements import LinkWanted, StepsWanted, Wanted

#: Rows whose order matters.
FIRST = 5
#: A gradient is known well enough where its relative standard error is less than this part of what
#: a device's step differs between its profile and a run anyway: more steps would hardly tell more.
ENOUGH = 1 / 3
#: Seconds that profiling may take in any case, and as a share of the best cluster's training.
MINUTE_S, SHARE = 60.0, 0.1


def next_wanted(
    profile: Profile, done: Sequence[Wanted], spent_s: float, request: RecommendRequest, budget_s: float | None = None
) -> Wanted | None:
    """What to measure next; None for nothing more.

    done: what was measured for this before. spent_s: seconds that profiling has taken.
    budget_s: seconds that it may take; None for a tenth of the planned training, and a minute.
    """
    try:
        ranked = recommend(profile, request)
    except PlanError:
        return None
    rows = ranked.rows(FIRST)
    limit_s = max(MINUTE_S, SHARE * rows[0].prediction.time_s) if budget_s is None else budget_s
    close = [row for row in rows[1:] if row.standing.tie]
    if spent_s >= limit_s or not close:
        return None
    wanted = [*_links(profile, ranked, [rows[0], *close]), *_steps(ranked, [rows[0], *close])]
    return next((each for each in wanted if each not in done), None)


def _links(profile: Profile, ranked: Recommendation, rows: Sequence[Row]) -> list[Wanted]:
    """Links between members of these clusters that exchange over estimated ones."""
    measured = {(link.source, link.target) for link in profile.links}
    through_server = ranked.inputs.strategy.through_server
    found: Counter[LinkWanted] = Counter()
    for row in rows:
        ends = [row.config.server] if through_server else list(row.config.workers)
        pairs = {tuple(sorted((one, other))) for one in ends for other in row.config.workers if one != other}
        found.update(LinkWanted(*pair) for pair in pairs if pair not in measured or pair[::-1] not in measured)
    return [link for link, _ in found.most_common()]


def _steps(ranked: Recommendation, rows: Sequence[Row]) -> list[Wanted]:
    """The workers of these clusters whose gradients are not known well, the worst first."""
    names = {name for row in rows for name in row.config.workers}
    errors = dict(zip(ranked.inputs.names, ranked.inputs.errors.gradient.tolist(), strict=True))
    unsure = sorted((name for name in names if errors[name] >= ENOUGH * RECORDED.step), key=lambda name: -errors[name])
    return [StepsWanted(name, ranked.settings.model) for name in unsure]
