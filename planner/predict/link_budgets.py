"""Link budgets are the parts of a message that links carry while a gradient is computed.

Compressors by link (DLion, section 3.3; Ako) send that much: the rate that a link had in the last
steps, times the seconds that the sender computed.
"""

import numpy as np

from planner.arrays import Floats
from planner.predict.member_costs import MemberCosts

#: Passes after which gradients and the messages that hold them up change no more.
PASSES = 6
#: Share of a processor that takes in messages beside the thread that computes on it.
BESIDE_COMPUTATION = 0.5


def all_the_time(costs: MemberCosts, shares: Floats) -> Floats:
    """(n, n) messages during an undisturbed gradient where all send without a pause.

    shares: (steps, n, n) [from, to] of a whole message. Infinite where nothing is sent.
    """
    return _fitting(costs.gradient_s, _through_links_s(costs, shares, np.ones_like(costs.alone_s)))


def in_turn(costs: MemberCosts, shares: Floats) -> Floats:
    """(n, n) messages during a gradient where each member sends when its own is ready.

    It sends for as long as it computed. Meanwhile it shares the links of its receivers with those
    who send then too, and a receiver that still computes takes in less. What comes during a
    computation makes that longer, and then more fits into it.
    Arguments as of ``all_the_time``.
    """
    gradient_s = costs.gradient_s
    for _ in range(PASSES):
        begun_s = costs.ready_s + gradient_s - costs.gradient_s
        fits = _fitting(gradient_s, _of_windows_s(costs, shares, begun_s, begun_s + gradient_s))
        sent = shares * np.minimum(1.0, fits)
        delay_s = costs.delay_s(sent, costs.ready_s[None, :], costs.sending_s(sent))
        gradient_s = costs.gradient_s + delay_s.mean(axis=0)
    return fits


def _of_windows_s(costs: MemberCosts, shares: Floats, begun_s: Floats, ended_s: Floats) -> Floats:
    """(n, n) seconds of whole messages, each sent between ``begun_s`` and ``ended_s``, (n,)."""
    beside = _overlaps(begun_s, ended_s, begun_s, ended_s)
    computing = _overlaps(np.zeros_like(begun_s), begun_s, begun_s, ended_s)
    free_s = _through_links_s(costs, shares, beside)
    taken_in_s = beside @ (shares.mean(axis=0) * costs.receive_s) / BESIDE_COMPUTATION
    slowed_s = np.maximum(free_s, np.where(costs.computes, taken_in_s, 0.0))
    rate = [np.divide(1.0, each_s, out=np.zeros_like(each_s), where=free_s > 0) for each_s in (free_s, slowed_s)]
    mean_rate = (1 - computing) * rate[0] + computing * rate[1]
    return np.divide(1.0, mean_rate, out=np.zeros_like(mean_rate), where=mean_rate > 0)


def _through_links_s(costs: MemberCosts, shares: Floats, beside: Floats) -> Floats:
    """(n, n) seconds of whole messages; 0 where nothing is sent.

    beside: (n, n) share of a sender's time in which each other one sends too, 1 for itself.
    """
    in_s = np.where(shares > 0, np.matmul(beside, shares) * costs.in_s, 0.0)
    return np.asarray(np.maximum(costs.sending_s(shares), in_s).mean(axis=0))


def _overlaps(begun_s: Floats, ended_s: Floats, since_s: Floats, until_s: Floats) -> Floats:
    """(n, n) [i, k] shares of since_s[i] to until_s[i] that lie in begun_s[k] to ended_s[k]."""
    common_s = np.minimum(ended_s, until_s[:, None]) - np.maximum(begun_s, since_s[:, None])
    return np.asarray(common_s.clip(0.0) / (until_s - since_s)[:, None])


def _fitting(gradient_s: Floats, message_s: Floats) -> Floats:
    unlimited = np.full_like(message_s, np.inf)
    return np.divide(gradient_s[:, None], message_s, out=unlimited, where=message_s > 0)
