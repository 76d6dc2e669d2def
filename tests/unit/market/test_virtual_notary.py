"""The simulator's notary finds out what a real one would: seals moved, stripped, and foreign."""

from dataclasses import fields, replace
from typing import Any

import pytest

from ramp.errors import SignatureInvalid
from ramp.model import contents as c
from ramp.model.acl import OFFERS, SEALED, Message, Performative
from ramp.model.agreement import ContractChange, Signed
from ramp.model.communicative_acts import DECLARED
from ramp.model.seal import SEAL_AGE_MAX, Role, Seal
from simulation.market.virtual_notary import EXAMINED, SealedText, VirtualNotary
from simulation.market.virtual_notary import is_admitted as is_admitted_at

NOW = 10


def is_admitted(message: Message, sealed: frozenset[type] = SEALED) -> bool:
    return is_admitted_at(message, NOW, sealed)


MESSAGE = Message(
    Performative.AGREE, "bank", "res", "r1", c.PaymentMade("a1", "t1", 5), reply_with="w", in_reply_to="v", reply_by=7
)
BANK = VirtualNotary("bank", Role.BANK)
SEALED_MESSAGE = BANK.seal(MESSAGE, 9)


def seal_on(message: Message) -> Seal:
    assert message.seal is not None
    return message.seal


def test_contents_with_seals_and_documents_are_examined() -> None:
    """The market delivers all others as they are."""
    passing_on = {kind for kind in DECLARED if any("seal" in field.name for field in fields(kind))}
    assert passing_on
    assert passing_on | {Signed} | SEALED <= EXAMINED


def test_what_its_sender_has_sealed_is_admitted() -> None:
    assert is_admitted(SEALED_MESSAGE)
    seal = seal_on(SEALED_MESSAGE)
    assert (seal.signer, seal.role, seal.receiver, seal.conversation_id, seal.signed_at) == (
        "bank",
        Role.BANK,
        "res",
        "r1",
        9,
    )
    assert BANK.open(seal.text, 9) == MESSAGE


@pytest.mark.parametrize(
    "change",
    [
        {"seal": None},
        {"sender": "mallory"},
        {"receiver": "alice"},
        {"conversation_id": "r2"},
        {"performative": Performative.INFORM},
        {"in_reply_to": "x"},
        {"reply_with": "x"},
        {"reply_by": None},
        {"content": c.PaymentMade("a1", "t1", 6)},
        {"content": c.PaymentMade("a2", "t1", 5)},
        {"content": c.ChangePosted("a1", 0, "t1", -5)},
    ],
    ids=str,
)
def test_a_seal_fits_no_other_message(change: dict[str, Any]) -> None:
    assert not is_admitted(replace(SEALED_MESSAGE, **change))


@pytest.mark.parametrize(
    "change",
    [
        {"signer": "alice"},
        {"receiver": "alice"},
        {"text": "sealed by bank"},
        {"role": Role.KEEPER},
        {"signed_at": 10},
        {"conversation_id": "r9"},
    ],
    ids=str,
)
def test_a_seal_cannot_be_altered(change: dict[str, Any]) -> None:
    assert not is_admitted(replace(SEALED_MESSAGE, seal=replace(seal_on(SEALED_MESSAGE), **change)))


def test_nobody_seals_in_anothers_name() -> None:
    """A stranger's own notary seals a message that names the bank as its sender; the party sees whose seal it is."""
    forged = VirtualNotary("mallory", Role.USER).seal(MESSAGE, 9)
    assert not is_admitted(forged)


def test_what_need_not_be_sealed_is_admitted_without() -> None:
    call = Message(Performative.QUERY_REF, "alice", "directory", "r1", c.DirectoryQuery("q", "s"))
    assert is_admitted(call)
    offer = Message(Performative.PROPOSE, "res", "alice", "r1", c.Proposal("r1", 1))
    assert is_admitted(offer)
    assert not is_admitted(offer, SEALED | OFFERS)
    assert is_admitted(VirtualNotary("res", Role.RESOURCE).seal(offer, 1), SEALED | OFFERS)


VOTE = c.FundsReserved("o1", "alice", (c.OrderLine("a1", "res", 5),), 5, 5, 0)
PAID = c.PaymentMade("a1", "t1", 5)
BODY = Signed(ContractChange("a1", 0, "o", "alice", "res", "bank", 0, reason=""), ("alice",))


def enclosing(content: Any, seal: Seal) -> c.Content:
    if isinstance(content, c.FundsReserved):
        return c.Commitment(BODY, content, seal)
    return c.Settled("a1", "o", BODY, content, seal)


@pytest.mark.parametrize(
    ("inner", "changed"),
    [
        (VOTE, replace(VOTE, user="mallory")),
        (PAID, replace(PAID, amount=6)),
    ],
    ids=["Commitment", "Settled"],
)
def test_a_seal_that_is_passed_on_must_fit_what_is_passed_on(inner: Any, changed: Any) -> None:
    sealed = Message(Performative.INFORM, "bank", "alice", "r1", inner)
    seal = seal_on(BANK.seal(sealed, 1))
    carrier = VirtualNotary("alice", Role.USER)

    def carried(content: Any, passed: Seal) -> Message:
        message = Message(Performative.INFORM, "alice", "res", "r1", enclosing(content, passed))
        return carrier.seal(message, 2)

    assert is_admitted(carried(inner, seal))
    assert not is_admitted(carried(changed, seal))
    assert not is_admitted(carried(inner, replace(seal, text="x")))
    assert not is_admitted(carried(inner, replace(seal, signer="mallory")))
    assert not is_admitted(carried(inner, replace(seal, receiver="mallory")))


def test_what_no_notary_has_sealed_cannot_be_opened() -> None:
    with pytest.raises(SignatureInvalid, match="the message has no valid seal"):
        BANK.open("sealed by bank", 9)
    with pytest.raises(SignatureInvalid):
        BANK.verify("<Agreement/>", 9)
    assert isinstance(seal_on(SEALED_MESSAGE).text, SealedText)


def test_a_seal_older_than_any_party_believes_is_not_admitted() -> None:
    assert is_admitted_at(SEALED_MESSAGE, SEAL_AGE_MAX)
    assert not is_admitted_at(SEALED_MESSAGE, seal_on(SEALED_MESSAGE).signed_at + SEAL_AGE_MAX + 1)
