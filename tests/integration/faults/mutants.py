"""Mutants of genuine stanzas: damaged in their text, their metadata, their certificates, their elements.

Half of those that are sealed are sealed anew after the damage, by the key of whom they come from: that is what a
certified liar can send, and it reaches the machines.
"""

import base64
import random
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding

from ramp.model.contents import DepositOrder, OverviewQuery
from ramp.model.instant import MINUTE, Instant
from ramp.protocol import events as ev
from ramp.rfql.signing import seals
from ramp.rfql.xml.parser import root_name
from ramp.runtime.keys.store import KeyStore
from tests.integration.faults.one_process import OneProcess, Stanza
from tests.property.test_rfql_mutations import ODD, damaged, mutate


def resealed(stanza: Stanza, keys: KeyStore, now: Instant) -> Stanza:
    """The stanza with its sender's own seal over whatever it says now."""
    key, certificate = keys.identity(stanza.sender)
    moment = seals.write_moment(now)
    unsigned = seals.SealedText(
        performative=stanza.metadata.get("performative", ""),
        document=root_name(stanza.body),
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


def mutant(
    genuine: Stanza, senders: Sequence[str], receivers: Sequence[str], keys: KeyStore, now: Instant, draw: random.Random
) -> Stanza | None:
    """One damaged stanza, at times from and to somebody else; None where nobody could seal what has come of it.

    Args:
        genuine: what was said in earnest.
        senders: addresses of who may say it.
        receivers: addresses of who may hear it.
        keys: of those who can seal; half of what was sealed is sealed anew.
        now: the moment of the new seal.
        draw: where the damage comes from.
    """
    metadata, body = dict(genuine.metadata), genuine.body
    kind = draw.randrange(6)
    if kind == 0:
        metadata[draw.choice([*metadata, "reply-by", "signed-at", "body-encoding"])] = draw.choice(ODD)
    elif kind == 1:
        del metadata[draw.choice(list(metadata))]
    elif kind == 2 and "certificate" in metadata:
        der = damaged(base64.b64decode(metadata["certificate"]), draw)
        metadata["certificate"] = base64.b64encode(der).decode()
    else:
        body = mutate(body, draw) or body
        if draw.randrange(4) == 0:
            body = mutate(body, draw) or body
    sender = genuine.sender if draw.randrange(4) else draw.choice(senders)
    receiver = genuine.receiver if draw.randrange(4) else draw.choice(receivers)
    changed = Stanza(sender, receiver, body, {key: value for key, value in metadata.items() if value}, genuine.thread)
    if "signature" in metadata and kind != 2 and draw.randrange(2):
        try:
            return resealed(changed, keys, now)
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
                child.text = draw.choice((None, *ODD))
            case 1:
                child.attrib.clear()
            case 2:
                child.tag = draw.choice(children).tag
            case _:
                element.set("type", "error")
    return element


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
    await keeper.command(ev.KeeperAsked(DepositOrder("deposit-1", "alice@localhost", 5, "gift")))
    await keeper.command(ev.KeeperAsked(OverviewQuery("query-2", None, None)))
    assert await market.run(lambda: agreement_id in user.party.changes.history.ended)
    await market.run(lambda: False, limit=MINUTE)
    return list(market.sent)
