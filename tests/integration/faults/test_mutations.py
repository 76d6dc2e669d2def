"""No message restarts an agent: mutants of everything that the market says, against live agents of every role.

Genuine stanzas are recorded, damaged (in their text, their metadata, their certificates, their elements) and handed to
any agent as coming from any other. Half of those that are sealed are sealed anew after the damage, by the key of whom
they come from: that is what a certified liar can send, and it reaches the machines.
"""

from __future__ import annotations

import base64
import logging
import random
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from one_process import NAMES, OneProcess, Stanza, in_one_process

from ramp.model.instant import MINUTE
from ramp.protocol import events as ev
from ramp.rfql import documents, seals

pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number", "ignore:Attribute's length must be")

VALUES = (
    "",
    "0",
    "-1",
    "1e999",
    "9" * 30,
    "PT999999999999S",
    "-PT1S",
    "P99999999999Y",
    "9999-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "NaN",
    "true",
    "\u00e9\u2028",
    "x" * 300,
    "mallory@localhost",
    "cancel",
    "agree",
)
"""What is put in the place of a value."""

DER_BYTES = (0x00, 0x01, 0x02, 0x03, 0x04, 0x06, 0x0C, 0x13, 0x17, 0x30, 0x7F, 0x80, 0xFF)


def damaged_text(text: str, draw: random.Random) -> str:
    """A value exchanged, a part doubled or dropped, or a character changed."""
    kind = draw.randrange(5)
    if kind <= 1:
        values = list(re.finditer(r">([^<>]+)<|=\"([^\"]*)\"", text))
        if values:
            found = draw.choice(values)
            group = 1 if found[1] is not None else 2
            return text[: found.start(group)] + draw.choice(VALUES) + text[found.end(group) :]
    at, size = draw.randrange(len(text) + 1), draw.randrange(1, 80)
    match kind:
        case 2:
            return text[:at] + text[at + size :]
        case 3:
            return text[:at] + text[at : at + size] + text[at:]
        case _:
            return text[:at] + chr(draw.choice((9, 38, 60, 62, 34, 0x7F, 0xE9, 0x2028, 0x1F600))) + text[at + 1 :]


def damaged_certificate(text: str, draw: random.Random) -> str:
    mutant = bytearray(base64.b64decode(text))
    for _ in range(draw.choice((1, 1, 2, 4))):
        at = draw.randrange(len(mutant))
        match draw.randrange(4):
            case 0:
                mutant[at] ^= 1 << draw.randrange(8)
            case 1:
                mutant[at] = draw.choice(DER_BYTES)
            case 2:
                del mutant[at : at + 2]
            case _:
                mutant[at:at] = draw.randbytes(draw.randrange(1, 4))
    return base64.b64encode(bytes(mutant)).decode()


def resealed(stanza: Stanza, market: OneProcess) -> Stanza:
    """The stanza with its sender's own seal over whatever it says now."""
    key, certificate = market.keys.identity(stanza.sender)
    moment = seals.write_moment(market.clock.now())
    unsigned = seals.SealedText(
        performative=stanza.metadata.get("performative", ""),
        document=documents.root_name(stanza.body),
        sender=stanza.sender,
        receiver=stanza.receiver,
        conversation_id=stanza.metadata.get("conversation-id", stanza.thread),
        reply_with=stanza.metadata.get("reply-with", ""),
        in_reply_to=stanza.metadata.get("in-reply-to", ""),
        reply_by=stanza.metadata.get("reply-by", ""),
        signed_at=moment,
        body=stanza.body,
    )
    signature = seals.sign(unsigned.sealed_part(), key)
    der = seals.pack(certificate.public_bytes(Encoding.DER))
    return replace(
        stanza, metadata={**stanza.metadata, "signed-at": moment, "signature": signature, "certificate": der}
    )


def mutant(genuine: Stanza, market: OneProcess, draw: random.Random) -> Stanza | None:
    """One damaged stanza; None where nobody could seal what has come of it."""
    metadata, body = dict(genuine.metadata), genuine.body
    kind = draw.randrange(6)
    if kind == 0:
        metadata[draw.choice([*metadata, "reply-by", "signed-at", "body-encoding"])] = draw.choice(VALUES)
    elif kind == 1:
        del metadata[draw.choice(list(metadata))]
    elif kind == 2 and "certificate" in metadata:
        metadata["certificate"] = damaged_certificate(metadata["certificate"], draw)
    else:
        body = damaged_text(body, draw)
        if draw.randrange(4) == 0:
            body = damaged_text(body, draw)
    names = [market.config.address(name) for name in NAMES]
    sender = genuine.sender if draw.randrange(4) else draw.choice(names)
    receiver = genuine.receiver if draw.randrange(4) else draw.choice(names)
    changed = Stanza(sender, receiver, body, {key: value for key, value in metadata.items() if value}, genuine.thread)
    if "signature" in metadata and kind != 2 and draw.randrange(2):
        try:
            return resealed(changed, market)
        except Exception:
            return None
    return changed


def as_element(stanza: Stanza, draw: random.Random) -> ElementTree.Element | None:
    """The stanza as it comes off the stream, at times with damage to the elements themselves."""
    try:
        element = stanza.element()
    except Exception:  # nothing that XML could carry
        return None
    if draw.randrange(20) == 0:
        children = list(element.iter())
        child = draw.choice(children)
        match draw.randrange(4):
            case 0:
                child.text = draw.choice((None, *VALUES))
            case 1:
                child.attrib.clear()
            case 2:
                child.tag = draw.choice(children).tag
            case _:
                element.set("type", "error")
    return element


UNBOUNDED: dict[str, tuple[str, ...]] = {
    "UserParty": ("purchases", "agreements", "_running", "_pages", "_bought", "_claims"),
    "ResourceParty": ("participants", "_by_agreement", "_open", "_armed_for", "_released", "_described"),
    "BankParty": ("_asked", "_open"),
    "KeeperParty": ("_pages",),
    "DirectoryParty": ("_entries",),
}
"""What would grow without a limit if a message that means nothing left something behind."""


def sizes(market: OneProcess) -> dict[str, int]:
    found = {}
    for name, agent in market.agents.items():
        party: Any = agent.host.party
        for attribute in UNBOUNDED[type(party).__name__]:
            found[f"{name}.{attribute}"] = len(getattr(party, attribute))
        questions = getattr(party, "_questions", None)
        found[f"{name}.questions"] = len(questions._open) if questions is not None else 0
        found[f"{name}.outgoing"] = len(agent._outgoing)
        found[f"{name}.answers"] = len(agent.host._answers)
        found[f"{name}.early"] = len(agent._early)
        journal = agent.host.ports.journal
        found[f"{name}.journal"] = len(journal.records()) if journal is not None else 0
    ledger = market.agents["bank"].host.ports.ledger
    assert ledger is not None
    found["ledger"] = len(ledger.ledger.entries())
    return found


async def genuine_traffic(market: OneProcess) -> list[Stanza]:
    """Everything that is said in a purchase, a cancellation, and everybody's questions."""
    await market.run(lambda: len(market.agents["directory"].host.party.registered) == 2)  # type: ignore[attr-defined]
    await market.submit("r1", market.request())
    assert await market.run(lambda: market.outcome("r1") is not None)
    user: Any = market.agents["alice"]
    agreement_id = next(iter(user.party.agreements))
    await user.command(ev.AgreementCancelled(agreement_id, "no need"))
    await user.command(ev.AccountAsked("nonce-1", None, None))
    await user.command(ev.MachineAsked("query-1", "alpha@localhost", MINUTE))
    keeper: Any = market.agents["keeper"]
    await keeper.command(ev.DepositOrdered("deposit-1", "alice@localhost", 5, "gift"))
    await keeper.command(ev.OverviewAsked("query-2", None, None))
    assert await market.run(lambda: agreement_id in user.party._returns.done)
    await market.run(lambda: False, limit=MINUTE)
    return list(market.sent)


async def bombard(market: OneProcess, count: int, seed: int) -> None:
    genuine = await genuine_traffic(market)
    kinds = {documents.root_name(stanza.body) for stanza in genuine}
    assert len(kinds) > 15, kinds  # the whole vocabulary, or nearly
    draw = random.Random(seed)
    before = sizes(market)
    market.sent.clear()
    taken = 0
    while taken < count:
        changed = mutant(draw.choice(genuine), market, draw)
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
    assert {name: agent.counters.faults for name, agent in market.agents.items()} == dict.fromkeys(NAMES, 0)
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


def test_mutants_restart_nobody(tmp_path: Path) -> None:
    run(tmp_path, 3_000, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_thousand_mutants_restart_nobody(tmp_path: Path) -> None:
    run(tmp_path, 100_000, seed=2)
