"""How a user's requests stand, put together from what is told."""

from ramp.control.events import RequestStanding
from ramp.model.instant import SECOND
from ramp.protocol.progress import RoundOpened
from ramp.web.live.standings import STANDINGS_MAX, Standings
from ramp.web.live.story import AuctionStory
from tests.unit.web.test_story import NOW


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
