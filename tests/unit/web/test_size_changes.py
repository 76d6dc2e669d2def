"""Changes of the sizes of a user's slots, put together from events."""

from dataclasses import replace

from ramp.model.agreement import ContractChange
from ramp.model.instant import HOUR, MINUTE, from_iso
from ramp.protocol.outcome import QUOTED, ChangeOutcome
from ramp.protocol.progress import ChangeAdvanced, ChangeEnded, RoundOpened
from ramp.web.live import SLOTS_MAX, SizeChanges

NOW = from_iso("2026-11-21T08:00:00Z")
PROPOSED = ContractChange(
    "agreement-1", 1, "d", "o", "alice", "big1", "bank", 8, NOW + HOUR, NOW + MINUTE, 100, NOW, NOW + HOUR
)
DONE = ChangeOutcome("agreement-1", 1, True, 8, NOW + HOUR, NOW + MINUTE, 100)


def test_a_change_goes_on_from_the_sellers_word_to_its_end() -> None:
    changes = SizeChanges()
    assert changes.latest("agreement-1") is None
    assert changes.take(ChangeAdvanced(PROPOSED))
    assert changes.latest("agreement-1") is PROPOSED
    assert changes.take(ChangeEnded(DONE))
    assert changes.latest("agreement-1") is DONE
    changes.forget_agreed()
    assert changes.latest("agreement-1") is DONE


def test_a_quotation_and_what_is_no_change_of_size_say_nothing() -> None:
    changes = SizeChanges()
    changes.take(ChangeAdvanced(PROPOSED))
    assert not changes.take(ChangeEnded(replace(DONE, done=False, number=0, code=QUOTED)))
    assert not changes.take(RoundOpened("request-1", 1, (), 3))
    assert changes.latest("agreement-1") is PROPOSED


def test_only_the_last_ones_are_kept() -> None:
    changes = SizeChanges()
    for number in range(SLOTS_MAX + 1):
        changes.take(ChangeEnded(replace(DONE, agreement_id=f"agreement-{number}")))
    assert changes.latest("agreement-0") is None
    assert changes.latest("agreement-1") is not None
