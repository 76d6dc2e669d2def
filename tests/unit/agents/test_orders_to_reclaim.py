"""Whoever has a resource take cores back is told what becomes of that slot, whatever becomes of others meanwhile."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from ramp.agents import roles
from ramp.agents.roles import ResourceAgent
from ramp.model.agreement import Reclamation
from ramp.protocol.amending.asking import ResizeSlot
from ramp.protocol.progress import ReclamationAdvanced
from ramp.protocol.reclaiming.asking import ReclaimOrdered
from ramp.protocol.resource.party import ResourceParty


class Slots(ResourceParty):
    """Of every slot four cores can go."""

    def __init__(self):
        pass

    def order_reclamation(self, order, now):
        return [ResizeSlot(order.reservation, 0, order.cores, now)], ""


class Selling(ResourceAgent):
    """Has nothing but such slots, and no server."""

    def __init__(self):
        self.jid = "curie@localhost"
        self._reclaiming = {}
        self.host = SimpleNamespace(party=Slots(), perform=lambda *_: None)

    def now(self):
        return 0

    async def _settle(self):
        pass


def advanced(offer_id, stage, *why):
    body = Reclamation(
        f"agreement-of-{offer_id}", 1, "digest", offer_id, "alice", "curie", "bank", 4, 9, 5, 800, 400, 0, 7
    )
    return ReclamationAdvanced(body, stage, *why)


async def test_two_orders_and_a_slot_that_nobody_has_asked_for():
    agent = Selling()
    first, second = (asyncio.create_task(agent.reclaim(ReclaimOrdered(slot, 4))) for slot in ("offer-1", "offer-2"))
    await asyncio.sleep(0)
    agent.watch(advanced("offer-3", "posted"))
    agent.watch(advanced("offer-2", "dropped", "short_notice", "too late"))
    agent.watch(advanced("offer-1", "noticed"))
    problems, told = await first
    assert problems == []
    assert "agreement-of-offer-1" in told[0]
    assert await second == (["short_notice: too late"], [])


async def test_where_the_bank_has_not_said_in_time_that_it_has_notice_it_may_have_it_yet(monkeypatch):
    monkeypatch.setattr(roles, "RECLAIM_LIMIT_S", 0.0)
    problems, told = await Selling().reclaim(ReclaimOrdered("offer-1", 4))
    assert problems[0].startswith("no_answer: the bank has not put it on record within 0 s")
    assert told == ["the bank is asked to note 4 cores of offer-1, and has not said yet that it has"]
    _, told = await Selling().reclaim(ReclaimOrdered("offer-1"))
    assert told[0].startswith("the bank is asked to note all cores that may go of offer-1")
