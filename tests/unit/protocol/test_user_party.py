"""The User Agent against strangers who speak for others."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import AccountQuery, Signed
from ramp.model.instant import HOUR, SECOND
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.timing import Timing
from ramp.protocol.user_party import UserParty
from simulation.market.counted_ids import CountedIds

UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)


@pytest.fixture
def alice() -> UserParty:
    return UserParty("alice", bank="bank", directory="directory", ids=CountedIds("alice"), timing=Timing())


def hear(party: UserParty, sender: str, performative: Performative, content: Any, now: int = 1) -> list[fx.Effect]:
    return party.handle(ev.MessageReceived(Message(performative, sender, "alice", "r1", content)), now)


def submit(party: UserParty, **options: Any) -> None:
    auction = ev.AuctionOptions(rounds=1, **options)
    party.handle(ev.RequestSubmitted("r1", RequestForQuotation((UNIT,)), auction), 0)


def call(party: UserParty) -> list[fx.Effect]:
    submit(party)
    return hear(party, "directory", Performative.INFORM, c.DirectoryListing("r1", "resource-trader", ("res1", "res2")))


def offer(resource: str, price: int = 60) -> Offer:
    return Offer(f"offer-{resource}", "r1", 1, resource, price, HOUR, 2 * HOUR, 16, 0.5, HOUR)


def propose(party: UserParty, resource: str, made: Offer) -> list[fx.Effect]:
    return hear(party, resource, Performative.PROPOSE, c.Proposal("r1", 1, (made,)))


def test_a_listing_comes_from_the_directory_only(alice: UserParty) -> None:
    submit(alice)
    with pytest.raises(RemoteProtocolError, match="res1 speaks for directory"):
        hear(alice, "res1", Performative.INFORM, c.DirectoryListing("r1", "resource-trader", ("res1",)))


def test_an_answer_of_somebody_who_was_not_called(alice: UserParty) -> None:
    call(alice)
    with pytest.raises(RemoteProtocolError, match="mallory was not called"):
        propose(alice, "mallory", offer("mallory"))


def test_an_offer_in_anothers_name_is_rejected(alice: UserParty) -> None:
    call(alice)
    (effect,) = propose(alice, "res1", offer("res2"))
    assert isinstance(effect, fx.Send)
    assert isinstance(effect.message.content, c.Rejection)


@pytest.mark.parametrize(
    "vote",
    [c.HoldGranted("r1", "offer-res1", "R1", 120 * SECOND), c.HoldRefused("r1", "offer-res1", RefusalCode.SLOT_TAKEN)],
)
def test_only_the_resource_asked_votes(alice: UserParty, vote: Any) -> None:
    call(alice)
    propose(alice, "res1", offer("res1", 50))
    propose(alice, "res2", offer("res2", 60))
    performative = Performative.AGREE if isinstance(vote, c.HoldGranted) else Performative.REFUSE
    with pytest.raises(RemoteProtocolError, match="res2 votes on another's offer"):
        hear(alice, "res2", performative, vote)


def bought(party: UserParty) -> str:
    call(party)
    propose(party, "res1", offer("res1", 50))
    propose(party, "res2", offer("res2", 60))
    effects = hear(party, "res1", Performative.AGREE, c.HoldGranted("r1", "offer-res1", "R1", 120 * SECOND))
    (signed,) = [e.message.content for e in effects if isinstance(e, fx.Send) and isinstance(e.message.content, Signed)]
    proof = Signed(signed.body, ("alice", "res1"))
    hear(party, "res1", Performative.INFORM, c.Settled(signed.body.agreement_id, "offer-res1", "t1", proof))
    return signed.body.agreement_id


def test_a_proof_without_both_signatures_settles_nothing(alice: UserParty) -> None:
    call(alice)
    propose(alice, "res1", offer("res1", 50))
    propose(alice, "res2", offer("res2", 60))
    effects = hear(alice, "res1", Performative.AGREE, c.HoldGranted("r1", "offer-res1", "R1", 120 * SECOND))
    (signed,) = [e.message.content for e in effects if isinstance(e, fx.Send) and isinstance(e.message.content, Signed)]
    half = c.Settled(signed.body.agreement_id, "offer-res1", "t1", Signed(signed.body, ("alice",)))
    with pytest.raises(RemoteProtocolError, match="lacks a signature"):
        hear(alice, "res1", Performative.INFORM, half)


def test_a_cancellation_is_answered_by_its_resource_and_the_bank_only(alice: UserParty) -> None:
    agreement_id = bought(alice)
    assert alice.agreement_state(agreement_id) == "active"
    alice.handle(ev.AgreementCancelled(agreement_id, "not needed"), 2)
    with pytest.raises(RemoteProtocolError, match="res2 speaks for res1"):
        hear(alice, "res2", Performative.INFORM, c.CancellationDone(agreement_id, 5000))
    with pytest.raises(RemoteProtocolError, match="res1 speaks for bank"):
        hear(alice, "res1", Performative.INFORM, c.PaymentStatus(agreement_id, "refunded", "t", 10**12))
    hear(alice, "res1", Performative.INFORM, c.CancellationDone(agreement_id, 5000))
    assert alice.agreement_state(agreement_id) == "cancelled"


def test_a_unit_that_comes_back_late_is_known_to_be_back(alice: UserParty) -> None:
    agreement_id = bought(alice)
    alice.handle(ev.AgreementCancelled(agreement_id, "not needed"), 2)
    hear(alice, "res1", Performative.REFUSE, c.CancellationRefused(agreement_id, "insufficient_funds"))
    assert alice.agreement_state(agreement_id) == "active"
    hear(alice, "res1", Performative.INFORM, c.CancellationDone(agreement_id, 5000))
    assert alice.agreement_state(agreement_id) == "cancelled"


def nonces(effects: list[fx.Effect]) -> list[str]:
    found = []
    for effect in effects:
        if isinstance(effect, fx.Send) and isinstance(effect.message.content, Signed):
            assert isinstance(effect.message.content.body, AccountQuery)
            found.append(effect.message.content.body.nonce)
    return found


def test_an_account_query_never_uses_a_nonce_twice(alice: UserParty) -> None:
    asked = nonces(alice.handle(ev.AccountAsked("q", None, None), 0))
    while alice.deadline is not None and len(asked) < 4:
        asked += nonces(alice.tick(alice.deadline))
    assert len(set(asked)) == 4
    (answered,) = hear(alice, "bank", Performative.INFORM, c.AccountStatement(asked[1], "alice", 5, 0, 0, 0))
    assert isinstance(answered, fx.Report)
    assert alice.deadline is None


def test_an_account_statement_comes_from_the_bank_only(alice: UserParty) -> None:
    alice.handle(ev.AccountAsked("q", None, None), 0)
    with pytest.raises(RemoteProtocolError, match="mallory speaks for bank"):
        hear(alice, "mallory", Performative.INFORM, c.AccountStatement("q", "alice", 10**9, 0, 0, 0))
