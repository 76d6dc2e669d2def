"""Sales are stored and told as they happen, and those of before when the watch begins."""

import asyncio

import pytest

from ramp.control.events import RequestEnded, RequestStanding, Watching
from ramp.web import live
from ramp.web.live import SaleWatch
from ramp.web.machines.sale_history import SaleHistory
from tests.unit.control.test_auction_story import NOW
from tests.unit.web.test_sale_history import bought

LIMIT_S = 300


class Agent:
    """A User Agent that has sold something before; what it tells comes from a queue."""

    def __init__(self):
        self.told = asyncio.Queue()

    async def watch(self, _):
        while True:
            yield await self.told.get()

    async def requests(self):
        ended = bought("before")
        return (RequestStanding("request-1", "committed", "", 1, NOW, ended),)


@pytest.fixture
async def agent(monkeypatch):
    found = Agent()
    monkeypatch.setattr(live, "watch_user", lambda _: found.watch)
    monkeypatch.setattr(live, "find_market", lambda *_: None)
    monkeypatch.setattr(live, "AsyncMarket", lambda _: found)
    return found


async def test_a_sale_is_stored_and_told_when_it_happens(agent, tmp_path):
    history = SaleHistory(tmp_path / "sales.sqlite")
    counted = []
    watch = SaleWatch(None, history, counted.append)
    heard = asyncio.Event()
    watch.listen(lambda _: heard.set())
    watch.keep(["alice"])
    for event, names in ((Watching(), {"before"}), (RequestEnded(bought("now")), {"before", "now"})):
        heard.clear()
        agent.told.put_nowait(event)
        await asyncio.wait_for(heard.wait(), LIMIT_S)
        assert {each.agreement_id for each in history.since(0)} == names
    assert counted == [RequestEnded(bought("now"))]
    await watch.end()
    history.close()
