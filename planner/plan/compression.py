"""A compressor's share or rank is chosen from the profile where the strategy does not name it.

Sending less costs steps to a target, which no profile tells of. So it is the most with which the
quickest cluster of several devices takes at most a tenth longer for its steps than with the least
that is tried, be it because an exchange is short, or because something else takes long.
"""

from backends.strategies.compressors.registry import CompressorSpec
from planner.plan.recommend import recommend
from planner.plan.recommendation import Recommendation
from planner.predict.request import RecommendRequest
from planner.profile.file import Profile

#: Shares of the elements of methods that exchange every step.
_SHARES = (0.1, 0.03, 0.01, 0.003, 0.001)
#: Options by compressor, and their values, the most first. Sparse LoCo's are 128 to 16 of 4,096.
CHOICES: dict[str, tuple[str, tuple[float, ...]]] = {
    "dgc": ("share", _SHARES),
    "ef21": ("share", _SHARES),
    "power-sgd": ("rank", (4, 2, 1)),
    "sparse-loco": ("share", (0.0312, 0.0156, 0.0078, 0.0039)),
}
#: By which share of its time a cluster may take longer, so that more is sent.
MOST_LONGER = 0.1
#: Of rounds whose length is chosen as well: longer ones would send more, and learn less of a step.
LONGEST_ROUND = "speed:every=100"


def recommend_compressed(profile: Profile, request: RecommendRequest) -> Recommendation:
    """``recommend``, with as much sent as suits the links. Raises PlanError as that does."""
    given = request.strategy.compressor
    name, values = CHOICES.get(given.name, ("", ()))
    if not values or name in dict(given.options):
        return recommend(profile, request)
    least_s, chosen = None, request
    for value in reversed(values):
        asked = request.setting(strategy=request.strategy.with_part("compressor", _with_option(given, name, value)))
        time_s = _quickest_s(recommend(profile, _of_bounded_rounds(asked)))
        if time_s is None:  # there is no cluster to choose for
            break
        least_s = time_s if least_s is None else least_s
        if time_s > least_s * (1 + MOST_LONGER):
            break
        chosen = asked
    return recommend(profile, chosen)


def _with_option(given: CompressorSpec, name: str, value: float) -> str:
    options = ",".join(f"{key}={each}" for key, each in (*given.options, (name, value)))
    return f"{given.name}:{options}"


def _of_bounded_rounds(request: RecommendRequest) -> RecommendRequest:
    local = request.strategy.local
    if not local or local.every is not None or local.seconds is not None:
        return request
    return request.setting(strategy=request.strategy.with_part("local", LONGEST_ROUND))


def _quickest_s(found: Recommendation) -> float | None:
    """Seconds of the quickest cluster of several devices; None where there is none."""
    several = found.several
    return float(found.parts[0].predictions.time_s[several].min()) if several.any() else None
