"""What pages know of changes of size that go on: agreed on, ended, and never a quotation."""

from __future__ import annotations

from dataclasses import replace

from ramp.control.events import RoundOpened
from ramp.model.agreement import Amendment
from ramp.model.instant import HOUR, MINUTE, from_iso
from ramp.protocol.amending.asking import QUOTED, AmendmentOutcome
from ramp.protocol.progress import AmendmentAdvanced, AmendmentEnded
from ramp.web.live.standings import SLOTS_MAX, SizeChanges

NOW = from_iso("2026-11-21T08:00:00Z")
PROPOSED = Amendment(
    "agreement-1", 1, "d", "o", "alice", "big1", "bank", 8, NOW + HOUR, NOW + MINUTE, 100, NOW, NOW + HOUR
)
DONE = AmendmentOutcome("agreement-1", 1, True, 8, NOW + HOUR, NOW + MINUTE, 100)


def test_a_change_goes_on_from_the_sellers_word_to_its_end() -> None:
    changes = SizeChanges()
    assert (changes.agreed("agreement-1"), changes.ended("agreement-1")) == (None, None)
    assert changes.take(AmendmentAdvanced(PROPOSED))
    assert (changes.agreed("agreement-1"), changes.ended("agreement-1")) == (PROPOSED, None)
    assert changes.take(AmendmentEnded(DONE))
    assert (changes.agreed("agreement-1"), changes.ended("agreement-1")) == (None, DONE)


def test_a_quotation_and_what_is_no_change_of_size_say_nothing() -> None:
    changes = SizeChanges()
    changes.take(AmendmentAdvanced(PROPOSED))
    assert not changes.take(AmendmentEnded(replace(DONE, done=False, number=0, code=QUOTED)))
    assert not changes.take(RoundOpened("request-1", 1, (), 3))
    assert (changes.agreed("agreement-1"), changes.ended("agreement-1")) == (PROPOSED, None)


def test_only_the_last_ones_are_kept() -> None:
    changes = SizeChanges()
    for number in range(SLOTS_MAX + 1):
        changes.take(AmendmentEnded(replace(DONE, agreement_id=f"agreement-{number}")))
    assert changes.ended("agreement-0") is None
    assert changes.ended("agreement-1") is not None
