"""What choosing and taking in messages costs a device."""

from backends.frameworks.layout import Variable
from backends.profiling import codec_profile
from backends.strategies.compressors.registry import COMPRESSORS


def test_every_kind_of_sender_is_timed() -> None:
    found = codec_profile.costs((Variable("w", (60, 50), 0, 3000), Variable("b", (50,), 3000, 50)))
    assert list(found) == list(COMPRESSORS)
    for each in found.values():
        assert codec_profile.FEWEST <= len(each.send_s.values) == len(each.add_s.values) <= codec_profile.MOST
        # A clock of processor time may stand still for as long as one of them takes.
        assert min(each.send_s.values) >= 0 and min(each.add_s.values) >= 0


def test_what_must_be_looked_for_costs_more_than_what_is_sent_as_it_is() -> None:
    """Some sixty times more, each at its quickest: whatever else the machine does, none gets
    quicker by it.
    """
    found = codec_profile.costs((Variable("w", (400_000,), 0, 400_000),))
    assert min(found["top-k"].send_s.values) > min(found["dense"].send_s.values)


def test_a_large_model_is_tried_on_a_part_of_it(monkeypatch) -> None:
    monkeypatch.setattr(codec_profile, "LARGEST_SIZE", 1000)
    small, times = codec_profile._shrunk([Variable("w", (90, 100), 0, 9000), Variable("b", (1000,), 9000, 1000)])
    assert times == 10.0
    assert [(variable.start, variable.size) for variable in small] == [(0, 900), (900, 100)]
