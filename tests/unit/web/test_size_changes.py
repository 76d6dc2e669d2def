"""How a user's requests and changes of size stand, put together from events."""

from __future__ import annotations

from dataclasses import replace

from ramp.control.events import RequestStanding, RoundOpened
from ramp.model.agreement import ContractChange
from ramp.model.instant import HOUR, MINUTE, SECOND, from_iso
from ramp.protocol.outcome import QUOTED, ChangeOutcome
from ramp.protocol.progress import ChangeAdvanced, ChangeEnded
from ramp.web.live.standings import SLOTS_MAX, STANDINGS_MAX, SizeChanges, Standings
from ramp.web.live.story import AuctionStory


def story(request_id, units=1):
    found = AuctionStory(request_id)
    found.take(RoundOpened(request_id, 1, tuple((unit + 1, 70) for unit in range(units)), 5), NOW)
    return found


def test_what_begins_is_the_latest_and_keeps_its_place_and_time():
    standings = Standings()
    standings.listed([RequestStanding("old", "settled", "", 1, NOW - SECOND)])
    standings.take(story("new", units=2), NOW)
    standings.take(story("newest"), NOW + SECOND)
    standings.take(story("new", units=2), NOW + 5 * SECOND)
    assert [(each.request_id, each.units, each.started_at) for each in standings.latest()] == [
        ("newest", 1, NOW + SECOND),
        ("new", 2, NOW),
        ("old", 1, NOW - SECOND),
    ]


def test_the_latest_are_kept_and_that_there_are_more_is_known():
    standings = Standings()
    listed = [RequestStanding(f"r{number}", "settled", "", 1, NOW) for number in range(STANDINGS_MAX)]
    standings.listed(listed)
    assert not standings.more
    standings.take(story("one too many"), NOW)
    kept = standings.latest()
    assert (standings.more, len(kept), kept[0].request_id, kept[-1].request_id) == (
        True,
        STANDINGS_MAX,
        "one too many",
        "r1",
    )
    standings.listed(listed[:3])
    assert (standings.more, len(standings.latest())) == (False, 3)


NOW = from_iso("2026-11-21T08:00:00Z")
PROPOSED = ContractChange(
    "agreement-1", 1, "d", "o", "alice", "big1", "bank", 8, NOW + HOUR, NOW + MINUTE, 100, NOW, NOW + HOUR
)
DONE = ChangeOutcome("agreement-1", 1, True, 8, NOW + HOUR, NOW + MINUTE, 100)


def test_a_change_goes_on_from_the_sellers_word_to_its_end() -> None:
    changes = SizeChanges()
    assert (changes.agreed("agreement-1"), changes.ended("agreement-1")) == (None, None)
    assert changes.take(ChangeAdvanced(PROPOSED))
    assert (changes.agreed("agreement-1"), changes.ended("agreement-1")) == (PROPOSED, None)
    assert changes.take(ChangeEnded(DONE))
    assert (changes.agreed("agreement-1"), changes.ended("agreement-1")) == (None, DONE)


def test_a_quotation_and_what_is_no_change_of_size_say_nothing() -> None:
    changes = SizeChanges()
    changes.take(ChangeAdvanced(PROPOSED))
    assert not changes.take(ChangeEnded(replace(DONE, done=False, number=0, code=QUOTED)))
    assert not changes.take(RoundOpened("request-1", 1, (), 3))
    assert (changes.agreed("agreement-1"), changes.ended("agreement-1")) == (PROPOSED, None)


def test_only_the_last_ones_are_kept() -> None:
    changes = SizeChanges()
    for number in range(SLOTS_MAX + 1):
        changes.take(ChangeEnded(replace(DONE, agreement_id=f"agreement-{number}")))
    assert changes.ended("agreement-0") is None
    assert changes.ended("agreement-1") is not None


def test_after_a_refund_only_the_agent_knows_the_costs():
    standings = Standings()
    standings.stale = True
    standings.listed([RequestStanding("r", "settled", "", 1, NOW, charged=700, returned=200)])
    (only,) = standings.latest()
    assert (standings.stale, only.cost) == (False, 500)
