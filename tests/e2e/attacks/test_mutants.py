"""No message over XMPP restarts an agent or makes it grow: damaged stanzas, some of them sealed by certified liars.

RAMP_MUTANTS sets how many are sent (100000 takes some minutes); the same against agents without a server, with a look
into their memory: tests/integration/faults/test_mutations.py.
"""

from __future__ import annotations

import asyncio
import os
import random
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import psutil
import pytest
from certified import Party, address
from mutants import as_element, genuine_traffic, mutant
from one_process import in_one_process
from standing import restarts
from swarm_books import Books
from swarm_market import in_hours, unit

from ramp.model.seal import Role
from ramp.rfql import documents
from ramp.runtime.ledger.store import LedgerStore

COUNT = int(os.environ.get("RAMP_MUTANTS", "3000"))
AT_ONCE = 500
"""Mutants that are sent before all agents are let read what they have been sent."""

GROWTH_MAX_MIB = 24
"""What an agent may take more once a tenth of the mutants is behind it: about what fifty purchases leave."""

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(max(600, COUNT // 20))]

ROLES = {"mallory": Role.USER, "malice": Role.RESOURCE, "stranger": None}
TARGETS = ("directory", "bank", "keeper", "small1", "big1", "alice")


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    """Everything that is said in a purchase, a cancellation, and everybody's questions."""
    return in_one_process(tmp_path_factory.mktemp("genuine"), genuine_traffic)


@pytest.fixture(scope="module")
def market(module_market, kind):
    quotas = {"messages_per_sender_per_second": 10**6, "burst": 10**6}  # what is dropped unread proves nothing
    market = module_market(kind=kind, users={"alice": 1_000_000}, accounts=list(ROLES), quotas=quotas)
    market.up()
    market.wait_ready()
    return market


def resident_mib(market):
    return {
        name: psutil.Process(market.agent(name)["pid"]).memory_info().rss / 2**20
        for name in TARGETS
        if name != "keeper"
    }


async def test_mutants_restart_nobody_and_nobody_grows(market, rogues, genuine):
    kinds = {documents.root_name(stanza.body) for stanza in genuine}
    assert len(kinds) > 15, kinds
    liars = [await Party.enter(market, rogues, name, role) for name, role in ROLES.items()]
    draw = random.Random(3)
    before, baseline, sent = restarts(market), {}, 0
    while sent < COUNT:
        liar = draw.choice(liars)
        spoken = replace(draw.choice(genuine), sender=liar.name, receiver=address(draw.choice(TARGETS)))
        changed = mutant(spoken, [liar.name], [spoken.receiver], liar.keys, liar.now, draw)
        element = as_element(changed, draw) if changed is not None else None
        if element is None or not element.tag.endswith("message"):
            continue  # a server ends the stream of whoever sends what is no stanza
        liar.rogue.write(ElementTree.tostring(element, encoding="unicode"))
        liar.used(spoken.receiver, changed.metadata.get("performative", ""))
        sent += 1
        if sent % AT_ONCE == 0:
            await asyncio.gather(*(each.is_read_by(target) for each in liars for target in TARGETS))
        if not baseline and sent >= COUNT // 10:
            baseline = resident_mib(market)
    await asyncio.gather(*(each.is_read_by(target) for each in liars for target in TARGETS))
    grown = {name: round(size - baseline[name], 1) for name, size in resident_mib(market).items()}
    print(f"{sent} mutants; grown by MiB: {grown}")
    assert restarts(market) == before
    assert max(grown.values()) < GROWTH_MAX_MIB, grown
    assert "Traceback" not in market.logs()
    await asyncio.to_thread(buys_as_ever, market)


def buys_as_ever(market):
    outcome = market.buy("alice", "request-after-the-mutants", [unit(1, 8, in_hours(2)), unit(2, 100, in_hours(2))])
    assert outcome["status"] == "committed", outcome
    Books(market).come_right()
    with LedgerStore.open(market.state.ledger) as ledger:
        assert ledger.audit() == []
