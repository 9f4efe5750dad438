"""Members that fall silent are noticed, ranks by the first one, whatever the others wait for."""

import threading

from backends.frameworks.process_group import BROKEN, GroupError
from backends.hosting.silent_members import Heartbeats, RankHeartbeats
from tests.backends.rank_run import SharedGroup, Table
from tests.running import HANG_S, until

NAMES = ("desktop", "tx1", "tx2")
LIMIT_S = 2.0


class Lost:
    """What heartbeats report."""

    def __init__(self):
        self.reasons = []
        self.reported = threading.Event()

    def __call__(self, reason):
        self.reasons.append(reason)
        self.reported.set()


def test_a_member_is_silent_from_the_limit_on_until_it_is_heard_again():
    now_s = [100.0]
    heartbeats = Heartbeats(10.0, lambda: now_s[0])
    heartbeats.hear("tx1")
    now_s[0] = 105.0
    heartbeats.hear("tx2")
    assert heartbeats.silent() == {}
    now_s[0] = 112.0
    assert heartbeats.silent() == {"tx1": 12.0}
    heartbeats.hear("tx1")
    assert heartbeats.silent() == {}


def test_a_silent_rank_is_named_and_those_that_beat_are_not():
    table, lost = Table(3), Lost()
    beating = RankHeartbeats(SharedGroup(table, 1), NAMES, LIMIT_S, Lost())
    first = RankHeartbeats(SharedGroup(table, 0), NAMES, LIMIT_S, lost)
    assert lost.reported.wait(HANG_S)
    beating.close()
    first.close()
    assert lost.reasons == ["no heartbeat of tx2 for 2 s"]


def test_nobody_is_lost_while_all_beat_and_none_after_the_end():
    table, losts = Table(3), [Lost() for _ in NAMES]
    running = [RankHeartbeats(SharedGroup(table, rank), NAMES, 60.0, lost) for rank, lost in enumerate(losts)]
    for one in running:
        one.close()
    assert not any(lost.reasons for lost in losts)


def test_a_first_rank_that_does_not_answer_is_reported():
    class Gone(SharedGroup):
        def beat(self, rank, by=1):
            raise GroupError(BROKEN)

    lost = Lost()
    RankHeartbeats(Gone(Table(3), 1), NAMES, LIMIT_S, lost)
    until(lambda: lost.reasons == [BROKEN], lambda: str(lost.reasons))
