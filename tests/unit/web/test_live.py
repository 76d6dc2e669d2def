"""The feed of a user's requests over a line that says what it is told, changes of size, and sales of all users."""

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ramp.client import dialogues
from ramp.client.asyncio_market import AsyncMarket
from ramp.control.events import Done, Refused, RequestStanding, Submitted, Watching
from ramp.control.requests import EVERYTHING, Submit, Watch
from ramp.errors import MarketRefused, NoMarket
from ramp.model.agreement import ContractChange
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.protocol.events import OffersApproved
from ramp.protocol.outcome import QUOTED, ChangeOutcome, RequestOutcome, RequestStatus
from ramp.protocol.progress import ApprovalAsked, ChangeAdvanced, ChangeEnded, RequestEnded, RoundOpened
from ramp.protocol.records import RequestConcluded
from ramp.runtime.journal import SqliteJournal
from ramp.runtime.state_folder import StateFolder
from ramp.web.live import STORIES_MAX, SaleHistory, SaleWatch, UserFeed
from tests.unit.control.test_auction_story import NOW, offer
from tests.unit.web.test_sale_history import bought
from tests.waiting import LIMIT_S, soon


def outcome(request_id, status=RequestStatus.REJECTED):
    return RequestOutcome(request_id, status, "", (), (), NOW, SECOND)


class FakeAgent:
    """A User Agent's control channel: what it tells comes from queues."""

    def __init__(self):
        self.told = asyncio.Queue()
        self.submitted = asyncio.Queue()
        self.answered = []
        self.listed = ()
        self.user = "alice"
        self.access = self

    # what a feed needs of an AsyncMarket

    async def requests(self):
        return self.listed

    async def ask(self, dialogue):
        return await AsyncMarket(self).ask(dialogue)

    def watch(self, request_id=""):
        return AsyncMarket(self).watch(request_id)

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

    async def events(self, request):
        if isinstance(request, OffersApproved):
            self.agent.answered.append(request)
            yield Done()
            return
        ended = [each.outcome for each in self.agent.listed if request == Watch(each.request_id) and each.outcome]
        if ended:
            yield RequestEnded(ended[0])
            return
        everything = request == EVERYTHING
        queue = self.agent.told if everything else self.agent.submitted
        if everything:
            yield Watching()
        while True:
            event = await queue.get()
            if event is None:
                raise NoMarket("gone")
            yield event


@pytest.fixture
async def agent():
    return FakeAgent()


@pytest.fixture
async def feed(agent):
    class Feed(UserFeed):
        def market(self, user):
            return agent

    found = Feed("alice", StateFolder(Path("nowhere")))
    yield found
    await found.end()


async def test_what_goes_on_is_told_to_every_page(agent, feed):
    one, two = [], []
    feed.changed.subscribe(one.append)
    feed.changed.subscribe(two.append)
    await agent.told.put(RoundOpened("r1", 1, ((1, 70),), 5))
    await soon(lambda: "r1" in one and "r1" in two)
    feed.changed.unsubscribe(two.append)
    await agent.told.put(RoundOpened("r2", 1, ((1, 70),), 5))
    await soon(lambda: "r2" in one)
    assert "r2" not in two
    assert feed.story("r1").stage == "round 1: waiting for offers"


async def test_who_asks_about_money_is_told_of_ends_only(agent, feed):
    everything, ends = [], []
    feed.changed.subscribe(everything.append)
    await agent.told.put(RoundOpened("r0", 1, ((1, 70),), 5))
    await soon(lambda: "r0" in everything)  # the agent is heard
    everything.clear()
    feed.ended.subscribe(ends.append)
    await agent.told.put(RoundOpened("r1", 1, ((1, 70),), 5))
    await agent.told.put(RequestEnded(outcome("r1")))
    await agent.told.put(RoundOpened("r2", 1, ((1, 70),), 5))
    await soon(lambda: "r2" in everything)
    assert (everything, ends) == (["r1", "r1", "r2"], ["r1"])


async def test_a_page_that_fails_does_not_silence_the_others(agent, feed):
    def broken(_):
        raise ValueError("a page")

    told = []
    feed.changed.subscribe(broken)
    feed.changed.subscribe(told.append)
    await agent.told.put(RoundOpened("r1", 1, ((1, 70),), 5))
    await soon(lambda: "r1" in told)


PROPOSED = ContractChange(
    "agreement-1", 1, "d", "o", "alice", "big1", "bank", 8, NOW + HOUR, NOW + MINUTE, 100, NOW, NOW + HOUR
)
DONE = ChangeOutcome("agreement-1", 1, True, 8, NOW + HOUR, NOW + MINUTE, 100)


async def test_pages_hear_of_changes_of_size_and_of_their_ends_but_of_no_quotation(agent, feed):
    everything, agreed, ends = [], [], []
    feed.changed.subscribe(everything.append)
    await agent.told.put(RoundOpened("r0", 1, ((1, 70),), 5))
    await soon(lambda: "r0" in everything)  # the agent is heard
    feed.agreed.subscribe(agreed.append)
    feed.ended.subscribe(ends.append)
    await agent.told.put(ChangeEnded(replace(DONE, done=False, number=0, code=QUOTED)))
    await agent.told.put(ChangeAdvanced(PROPOSED))
    await agent.told.put(RoundOpened("r1", 1, ((1, 70),), 5))
    await soon(lambda: "r1" in everything)
    assert (agreed, ends) == ([PROPOSED], [])
    await agent.told.put(ChangeEnded(DONE))
    await soon(lambda: ends == [""])


async def test_a_request_that_cannot_be_read_hides_no_others(agent, feed, monkeypatch):
    def unreadable(request_id):
        if request_id == "r1":
            raise MarketRefused("unknown", "r1")
        return dialogues.outcome(request_id)

    monkeypatch.setattr("ramp.web.live.dialogues", SimpleNamespace(outcome=unreadable))
    agent.listed = tuple(RequestStanding(name, "rejected", "", 1, NOW, outcome(name)) for name in ("r1", "r2"))
    await agent.told.put(None)
    await soon(lambda: (story := feed.story("r2")) is not None and story.outcome is not None)


async def test_a_market_that_ends_is_followed_again(agent, feed):
    await agent.told.put(None)
    agent.listed = (RequestStanding("r9", "bidding", "", 1, NOW),)
    await soon(lambda: feed.story("r9") is not None)


@pytest.mark.parametrize("approved", [True, False])
async def test_the_owner_is_asked_and_answers(agent, feed, approved):
    taking = asyncio.create_task(feed.submit(Submit("<x/>", "r1")))
    await agent.submitted.put(Submitted("r1"))
    assert await taking == "r1"
    await agent.told.put(ApprovalAsked("r1", (offer("a", 45),), (True,), (36000,), NOW))
    await soon(lambda: (story := feed.story("r1")) is not None and story.approval is not None)
    await feed.answer("r1", approved)
    assert agent.answered == [OffersApproved("r1", approved)]
    assert feed.story("r1").approval is None


async def test_what_waited_when_the_pages_were_served_anew_is_asked_again(agent, feed):
    agent.listed = (RequestStanding("r1", "approving", "", 1, NOW),)
    await agent.told.put(None)
    await agent.submitted.put(ApprovalAsked("r1", (offer("a", 45),), (True,), (36000,), NOW))
    await soon(lambda: (story := feed.story("r1")) is not None and story.approval is not None)


async def test_who_looks_before_the_agent_is_heard_sees_what_goes_on(agent, feed):
    agent.listed = (RequestStanding("r1", "bidding", "", 1, NOW),)
    story = await feed.find("r1")
    await agent.told.put(RoundOpened("r1", 1, ((1, 70),), 5))
    await soon(lambda: story.rounds)


async def test_a_refusal_of_the_submission_is_the_callers(agent, feed):
    taking = asyncio.create_task(feed.submit(Submit("<x/>", "r1")))
    await agent.submitted.put(Refused("bad_document", "no"))
    with pytest.raises(MarketRefused, match="no"):
        await taking


async def test_requests_that_have_ended_leave_memory(agent, feed):
    agent.listed = tuple(RequestStanding(f"old{n}", "", "", 1, NOW, outcome(f"old{n}")) for n in range(500))
    await agent.told.put(None)
    await soon(lambda: feed.story("old499") is not None)
    for number in range(200):
        await agent.told.put(RoundOpened(f"open{number}", 1, ((1, 70),), 5))
    await soon(lambda: feed.story("open199") is not None)
    assert feed.story("old499") is None
    assert all(feed.story(f"open{n}") is not None for n in range(200))  # what goes on is kept whatever comes
    assert len(feed._stories) <= STORIES_MAX + 200


class Seller:
    """A User Agent that has sold something before; what it tells comes from a queue."""

    user = "alice"

    def __init__(self):
        self.told = asyncio.Queue()

    async def watch(self):
        while True:
            yield await self.told.get()

    async def requests(self):
        ended = bought("before")
        return (RequestStanding("request-1", "committed", "", 1, NOW, ended),)


@pytest.fixture
async def seller(monkeypatch):
    found = Seller()
    monkeypatch.setattr(SaleWatch, "market", lambda _, user: found)
    return found


async def test_a_sale_is_stored_and_told_when_(seller, tmp_path):
    state = StateFolder(tmp_path)
    state.prepare()
    journal = SqliteJournal(state.journal("alice"))
    journal.append(RequestConcluded("request-0", bought("archived"), NOW))
    journal.archive(["request-0"])
    journal.close()
    history = SaleHistory()
    counted = []
    watch = SaleWatch(state, history, counted.append)
    heard = asyncio.Event()
    watch.changed.subscribe(heard.set)
    watch.keep(["alice"])
    for event, names in ((Watching(), {"before", "archived"}), (RequestEnded(bought("now")), {"now"})):
        seller.told.put_nowait(event)
        while not names <= {each.agreement_id for each in history.since(0)}:
            heard.clear()
            await asyncio.wait_for(heard.wait(), LIMIT_S)
    assert counted == [RequestEnded(bought("now"))]
    await watch.end()
