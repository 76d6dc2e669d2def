"""The story of a request: folded from events, the same from the record, and bounded."""

from ramp.control.auction_story import MOMENTS_MAX, ROUNDS_MAX, AuctionStory
from ramp.model.contents import Bid
from ramp.model.instant import HOUR, SECOND
from ramp.model.offer import Offer, Refusal, RefusalCode
from ramp.protocol.outcome import RequestOutcome, RequestStatus, ResourceRefusal, RoundRecord
from ramp.protocol.progress import ApprovalAsked, RequestEnded, RoundClosed, RoundOpened, UnitAdvanced
from ramp.web.pages.charts import auction_chart

NOW = 10**15


def offer(resource, price, unit=1):
    return Offer(f"offer-{resource}-{price}", "r", unit, resource, price, NOW, NOW + HOUR, 8, 0.5, 60 * SECOND)


def refusal(resource, code, nearest="", unit=1):
    return ResourceRefusal(resource, Refusal(unit, code, nearest))


FIRST = RoundRecord(
    1,
    ((1, 70),),
    (offer("a", 60), offer("b", 50)),
    (Bid(1, "a", 60), Bid(1, "b", 50)),
    (
        refusal("c", RefusalCode.PRICE, "90 credits/core-hour"),
        refusal("d", RefusalCode.PRICE, "80 credits/core-hour"),
        refusal("e", RefusalCode.NO_ANSWER),
    ),
    SECOND,
)
SECOND_ROUND = RoundRecord(
    2,
    ((1, 50),),
    (offer("a", 45),),
    (Bid(1, "a", 45),),
    (refusal("b", RefusalCode.OWN_OFFER_STANDS),),
    SECOND,
)


def test_rounds_are_told_as_they_come():
    story = AuctionStory("r")
    assert story.stage == "looking for sellers"
    assert story.take(RoundOpened("r", 1, ((1, 70),), 5), NOW)
    assert story.stage == "round 1: waiting for offers"
    assert story.leader(1) is None
    assert story.take(RoundClosed("r", FIRST, ((1, FIRST.bids[1]),)), NOW)
    assert (story.stage, story.leader(1).resource, story.rounds[1].resources) == ("round 1", "b", 5)
    assert [(each.code, len(each.entries), each.passing(str.upper, str)) for each in story.reasons()] == [
        ("price_below_minimum", 2, "D: 80 credits/core-hour; C: 90 credits/core-hour"),
        ("no_answer", 1, ""),
    ]
    story.take(RoundOpened("r", 2, ((1, 50),), 4), NOW)
    assert story.leader(1).resource == "b"  # until the second is closed


def test_an_approval_is_asked_until_the_request_has_ended():
    story = AuctionStory("r")
    story.take(ApprovalAsked("r", (offer("a", 45),), (True,), (36000,), NOW), NOW)
    assert story.stage == "waiting for your approval"
    outcome = RequestOutcome("r", RequestStatus.REJECTED, "declined", (FIRST,), (), NOW, SECOND)
    story.take(RequestEnded(outcome, {}), NOW)
    assert (story.approval, story.stage) == (None, "rejected")


def test_what_was_not_seen_comes_from_the_record():
    told, seen = AuctionStory("r"), AuctionStory("r")
    for record, best in ((FIRST, FIRST.bids[1]), (SECOND_ROUND, SECOND_ROUND.bids[0])):
        seen.take(RoundClosed("r", record, ((1, best),)), NOW)
    told.end(RequestOutcome("r", RequestStatus.QUOTED, "", (FIRST, SECOND_ROUND), (), NOW, SECOND))
    assert [dict(each.best) for each in told.rounds.values()] == [dict(each.best) for each in seen.rounds.values()]
    assert auction_chart(told, 1) == auction_chart(seen, 1)
    steps = {each["name"]: each["data"] for each in auction_chart(seen, 1)["series"]}
    assert steps == {"asking price": [70, 50], "best offer": [50, 45], "offers": (("1", 60), ("1", 50), ("2", 45))}


def test_a_story_is_bounded():
    story = AuctionStory("r")
    for number in range(1, 1001):
        story.take(RoundOpened("r", number, ((1, 70),), 5), NOW)
        story.take(UnitAdvanced("r", 1, "a", "asking"), NOW)
    assert len(story.rounds) == ROUNDS_MAX
    assert max(story.rounds) == 1000
    assert len(story.moments) == MOMENTS_MAX
