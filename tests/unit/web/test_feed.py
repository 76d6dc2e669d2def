"""The feed of a user's requests, over a line of its own that says what it is told."""

import asyncio

import pytest

from ramp.client.asyncio_market import AsyncMarket
from ramp.control.events import Refused, RequestEnded, RequestsListed, RequestStanding, Submitted, Watching
from ramp.control.requests import EVERYTHING, Approve, ListRequests, Submit
from ramp.errors import MarketRefused, NoMarket
from ramp.model.instant import SECOND
from ramp.protocol.outcome import RequestOutcome, RequestStatus
from ramp.protocol.progress import ApprovalAsked, RoundOpened
from ramp.web.live.feed import STORIES_MAX, UserFeed
from tests.unit.web.test_story import NOW, offer

LIMIT_S = 300


def outcome(request_id, status=RequestStatus.REJECTED):
    return RequestOutcome(request_id, status, "", (), (), NOW, SECOND)


class FakeAgent:
    """A User Agent's control channel: what it tells comes from queues."""

    def __init__(self):
        self.told = asyncio.Queue()
        self.submitted = asyncio.Queue()
        self.sent = asyncio.Queue()
        self.listed = ()
        self.user = "alice"
        self.access = self

    # what a feed needs of an AsyncMarket

    async def requests(self):
        return self.listed

    async def ask(self, dialogue):
        request = next(dialogue)
        assert isinstance(request, ListRequests)
        try:
            dialogue.send(RequestsListed(self.listed))
        except StopIteration as end:
            return end.value

    def watch(self):
        return AsyncMarket(self).watch()

    async def open(self):
        return self._line()

    reopen = open  # noqa: A003 - the name of the protocol

    def _line(self):
        return Line(self)


class Line:
    def __init__(self, agent):
        self.agent = agent

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    async def send(self, request):
        await self.agent.sent.put(request)

    async def events(self, request):
        everything = request == EVERYTHING
        queue = self.agent.told if everything else self.agent.submitted
        if everything:
            yield Watching()
        while True:
            event = await queue.get()
            if event is None:
                raise NoMarket("gone")
            yield event


async def until(condition):
    async with asyncio.timeout(LIMIT_S):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture
async def agent():
    return FakeAgent()


@pytest.fixture
async def feed(agent):
    found = UserFeed(lambda: agent)
    found.begin()
    yield found
    await found.end()


async def test_what_goes_on_is_told_to_every_page(agent, feed):
    one, two = [], []
    feed.listen(one.append)
    stop = feed.listen(two.append)
    await agent.told.put(RoundOpened("r1", 1, ((1, 70),), 5))
    await until(lambda: "r1" in one and "r1" in two)
    stop()
    await agent.told.put(RoundOpened("r2", 1, ((1, 70),), 5))
    await until(lambda: "r2" in one)
    assert "r2" not in two
    assert feed.story("r1").stage == "round 1: waiting for offers"


async def test_how_requests_stand_is_known_without_asking_again(agent, feed):
    agent.listed = (RequestStanding("r1", "bidding", "", 2, NOW),)
    await agent.told.put(None)
    await until(lambda: not feed.is_heard)
    await until(lambda: feed.is_heard and feed.standings.latest())  # it asks when the agent is heard again
    agent.listed = ()
    await agent.told.put(RoundOpened("r2", 1, ((1, 70), (2, 70)), 5))
    await agent.told.put(RequestEnded(outcome("r1")))
    await until(lambda: feed.standings.latest()[-1].outcome is not None)
    assert [(each.request_id, each.stage, each.units) for each in feed.standings.latest()] == [
        ("r2", "round 1: waiting for offers", 2),
        ("r1", "rejected", 2),
    ]


async def test_who_asks_about_money_is_told_of_ends_only(agent, feed):
    await until(lambda: feed.is_heard)
    everything, ends = [], []
    feed.listen(everything.append)
    feed.listen_to_ends(lambda: ends.append(everything[-1]))
    await agent.told.put(RoundOpened("r1", 1, ((1, 70),), 5))
    await agent.told.put(RequestEnded(outcome("r1")))
    await agent.told.put(RoundOpened("r2", 1, ((1, 70),), 5))
    await until(lambda: "r2" in everything)
    assert (everything, ends) == (["r1", "r1", "r2"], ["r1"])


async def test_a_page_that_fails_does_not_silence_the_others(agent, feed):
    def broken(_):
        raise ValueError("a page")

    told = []
    feed.listen(broken)
    feed.listen(told.append)
    await agent.told.put(RoundOpened("r1", 1, ((1, 70),), 5))
    await until(lambda: "r1" in told)


async def test_a_market_that_ends_is_followed_again(agent, feed):
    await agent.told.put(None)
    await until(lambda: feed.problem == "gone")
    agent.listed = (RequestStanding("r9", "bidding", "", 1, NOW),)
    await until(lambda: feed.problem == "" and feed.story("r9") is not None)


async def test_the_owner_is_asked_and_answers(agent, feed):
    taking = asyncio.create_task(feed.submit(Submit("<x/>", "r1")))
    await agent.submitted.put(Submitted("r1"))
    assert await taking == "r1"
    await agent.submitted.put(ApprovalAsked("r1", (offer("a", 45),), (True,), (36000,)))
    await until(lambda: feed.story("r1").approval is not None)
    feed.answer("r1", True)
    async with asyncio.timeout(LIMIT_S):
        assert await agent.sent.get() == Approve(True)
    assert feed.story("r1").approval is None


async def test_what_waited_when_the_pages_were_served_anew_is_asked_again(agent, feed):
    agent.listed = (RequestStanding("r1", "approving", "", 1, NOW),)
    await agent.told.put(None)
    await agent.submitted.put(ApprovalAsked("r1", (offer("a", 45),), (True,), (36000,)))
    await until(lambda: (story := feed.story("r1")) is not None and story.approval is not None)
    feed.answer("r1", True)
    async with asyncio.timeout(LIMIT_S):
        assert await agent.sent.get() == Approve(True)


async def test_who_looks_before_the_agent_is_heard_sees_what_goes_on(agent, feed):
    agent.listed = (RequestStanding("r1", "bidding", "", 1, NOW),)
    story = await feed.find("r1")
    await agent.told.put(RoundOpened("r1", 1, ((1, 70),), 5))
    await until(lambda: story.rounds)


async def test_what_was_submitted_at_a_terminal_may_be_approved_here(agent, feed):
    asked = ApprovalAsked("r1", (offer("a", 45),), (True,), (36000,))
    await agent.told.put(asked)
    await agent.submitted.put(asked)
    await until(lambda: (story := feed.story("r1")) is not None and story.approval is not None and feed._approvals)
    await agent.told.put(RequestEnded(outcome("r1")))  # answered there, meanwhile
    await until(lambda: not feed._approvals)


async def test_a_refusal_of_the_submission_is_the_callers(agent, feed):
    taking = asyncio.create_task(feed.submit(Submit("<x/>", "r1")))
    await agent.submitted.put(Refused("bad_document", "no"))
    with pytest.raises(MarketRefused, match="no"):
        await taking


async def test_requests_that_have_ended_leave_memory(agent, feed):
    agent.listed = tuple(RequestStanding(f"old{n}", "", "", 1, NOW, outcome(f"old{n}"), True) for n in range(500))
    await agent.told.put(None)
    await until(lambda: feed.story("old499") is not None and feed.problem == "")
    for number in range(200):
        await agent.told.put(RoundOpened(f"open{number}", 1, ((1, 70),), 5))
    await until(lambda: feed.story("open199") is not None)
    assert feed.story("old499") is None
    assert all(feed.story(f"open{n}") is not None for n in range(200))  # what goes on is kept whatever comes
    assert len(feed._stories) <= STORIES_MAX + 200
