"""No message restarts an agent: mutants of everything that the market says, against live agents of every role.

Genuine stanzas are recorded, damaged and handed to any agent as coming from any other.
"""

import logging
import random
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from ramp.model.instant import MINUTE
from ramp.rfql.xml.parser import root_name
from tests.integration.faults.mutants import as_element, genuine_traffic, mutant
from tests.integration.faults.one_process import NAMES, OneProcess, in_one_process

pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number", "ignore:Attribute's length must be")

UNBOUNDED: dict[str, tuple[str, ...]] = {
    "UserParty": ("purchases", "agreements", "_running", "_bought"),
    "ResourceParty": (
        "participants",
        "_kept.by_agreement",
        "releases",
        "_kept._released",
        "jobs._jobs",
        "jobs._waiting",
        "jobs._reads",
    ),
    "BankParty": ("_open",),
    "DirectoryParty": ("_entries",),
}
"""What would grow without a limit if a message that means nothing left something behind."""


def sizes(market: OneProcess) -> dict[str, int]:
    found = {}
    for name, agent in market.agents.items():
        party: Any = agent.host.party
        for attribute in UNBOUNDED.get(type(party).__name__, ()):
            found[f"{name}.{attribute}"] = len(attrgetter(attribute)(party))
        for number, group in enumerate(party._groups):
            found[f"{name}.conversations.{number}"] = len(group)
        found[f"{name}.outgoing"] = len(agent._outgoing)
        found[f"{name}.answers"] = len(agent.host._answers)
        journal = agent.host.ports.journal
        found[f"{name}.journal"] = len(journal.records()) if journal is not None else 0
    ledger = market.agents["bank"].host.ports.ledger
    found["ledger"] = len(ledger.ledger.snapshot().entries)
    return found


async def bombard(market: OneProcess, count: int, seed: int) -> None:
    genuine = await genuine_traffic(market)
    kinds = {root_name(stanza.body) for stanza in genuine}
    assert len(kinds) > 15, kinds  # the whole vocabulary, or nearly
    draw = random.Random(seed)
    names = [market.config.address(name) for name in NAMES]
    before = sizes(market)
    market.sent.clear()
    taken = 0
    while taken < count:
        changed = mutant(draw.choice(genuine), names, names, market.keys, market.clock.now(), draw)
        element = as_element(changed, draw) if changed is not None else None
        if changed is None or element is None:
            continue
        await market.hand_over(market.agents[changed.receiver.partition("@")[0]], element)
        taken += 1
        if taken % 500 == 0:
            market._under_way.clear()  # what is answered goes to nobody
            market.sent.clear()
    assert market.ended == []
    assert market.faults == []
    assert {name: agent.host.failure for name, agent in market.agents.items()} == dict.fromkeys(NAMES)
    assert {name: agent.faults for name, agent in market.agents.items()} == dict.fromkeys(NAMES, 0)
    grown = {name: (before[name], size) for name, size in sizes(market).items() if size > before[name] + ALLOWED}
    assert grown == {}
    market._under_way.clear()
    await market.run(lambda: False, limit=2 * MINUTE)  # a liar may strike itself out; it registers again
    await market.submit("r2", market.request(units=1))  # and they still do their work
    assert await market.run(lambda: market.outcome("r2") is not None)
    assert market.outcome("r2").status == "committed"


ALLOWED = 40
"""Certified liars may do what is theirs to do, a few times each: have an order voided, claim, deposit as keeper."""


def run(folder: Path, count: int, seed: int) -> None:
    logging.getLogger("ramp").setLevel(logging.CRITICAL)
    try:
        scenario: Callable[[OneProcess], Any] = lambda market: bombard(market, count, seed)  # noqa: E731
        in_one_process(folder, scenario)
    finally:
        logging.getLogger("ramp").setLevel(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_thousand_mutants_restart_nobody(tmp_path: Path) -> None:
    run(tmp_path, 100_000, seed=2)
