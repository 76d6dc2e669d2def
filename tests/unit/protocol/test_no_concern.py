"""What concerns a party: no message of another kind, no other signature than the one demanded."""

from itertools import product
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.agreement import ContractChange, Signed
from ramp.protocol import events as ev
from tests.unit.protocol.conftest import PARTIES, contents

FOREIGN = {**dict.fromkeys(PARTIES, ev.MachineOpened("live")), "res": ev.ResourcesAsked("q")}
NONSENSE = {
    "alice": c.Registered("resource-trader", 1),
    "res": c.DirectoryListing("q", "resource-trader", ()),
    "bank": c.DirectoryListing("q", "resource-trader", ()),
    "keeper": c.Confirmed("a1", "o1"),
    "directory": c.HoldCancelled("r1", "o1"),
}


@pytest.mark.parametrize("name", PARTIES)
def test_who_was_not_understood_answers_nothing(name: str) -> None:
    """Else two parties that do not understand each other would go on for ever."""
    assert PARTIES[name]().hear("mallory", c.NotUnderstood("what?")) == []


@pytest.mark.parametrize("name", PARTIES)
def test_an_event_of_another_party_changes_nothing(name: str) -> None:
    assert PARTIES[name]().party.handle(FOREIGN[name], 0) == []


@pytest.mark.parametrize("name", PARTIES)
def test_what_has_no_place_is_not_understood_and_says_what_it_was(name: str, refused: Any) -> None:
    with refused as caught:
        PARTIES[name]().hear("mallory", NONSENSE[name])
    assert type(NONSENSE[name]).__name__ in caught.value.reason


NAMES = ("alice", "res1", "mallory")
SIGNERS = [signers for length in range(4) for signers in product(NAMES, repeat=length)]
BOTH = ("alice", "res1")


@pytest.mark.parametrize("signers", [each for each in SIGNERS if each != BOTH])
def test_the_bank_pays_for_no_other_signatures_than_both(signers: tuple[str, ...], bank: Any) -> None:
    """What the named resource brings in a wrong form ends the order: the buyer has its money back at once."""
    bank.order()
    answers = contents(bank.countersign(bank.line(), signers=signers))
    assert {type(each) for each in answers} == {c.PaymentRefused, c.OrderVoided}
    assert {each.code for each in answers} == {"bad_signature"}
    assert (bank.posted("res1"), bank.posted("alice"), bank.reserved()) == (0, 200_000, 0)
    bank.countersign(bank.line(), now=21)  # and the right ones come too late
    assert (bank.posted("res1"), bank.posted("alice"), bank.reserved()) == (0, 200_000, 0)


@pytest.mark.parametrize("sender", ["alice", "res1", "res2", "mallory"])
@pytest.mark.parametrize("signers", SIGNERS)
def test_the_bank_refunds_on_both_signatures_or_the_buyers_own(
    signers: tuple[str, ...], sender: str, bank: Any
) -> None:
    bank.order()
    bank.countersign(bank.line())
    answers = contents(bank.cancellation(bank.line(), signers, sender, 30))
    right = (signers, sender) in ((BOTH, "res1"), (("alice",), "alice"))
    assert bank.posted("alice") == (200_000 if right else 104_000)
    assert type(answers[0]) is (c.ChangePosted if right else c.ChangeRefused)
    assert right or [each.code for each in answers] == ["bad_signature"]


@pytest.mark.parametrize("signers", [*product(("alice", "res", "mallory"), repeat=2), (), ("res",), ("mallory",)])
def test_a_resource_makes_nothing_firm_but_for_its_buyers_signature_alone(
    signers: tuple[str, ...], resource: Any
) -> None:
    offer, _ = resource.hold()
    rightly = resource.commitment(resource.agreement(offer))
    with pytest.raises(RemoteProtocolError, match="signed by the buyer"):
        resource.hear("alice", c.Commitment(Signed(rightly.agreement.body, signers), rightly.vote, rightly.vote_seal))
    assert resource.state(offer) == "held"


@pytest.mark.parametrize("signers", [(), ("res",), ("mallory",), ("alice", "res"), ("alice", "mallory")])
def test_a_resource_gives_nothing_back_but_for_its_buyers_signature_alone(
    signers: tuple[str, ...], resource: Any
) -> None:
    offer = resource.sell()
    before = resource.state(offer)
    body = ContractChange("a1", 0, offer.offer_id, "alice", "res", "bank", 1, reason="no")
    with pytest.raises(RemoteProtocolError, match="signed by the buyer"):
        resource.hear("alice", Signed(body, signers, "text"))
    assert resource.state(offer) == before


def test_a_resource_takes_nothing_that_its_buyer_has_signed_in_anothers_name(resource: Any, refused: Any) -> None:
    offer, _ = resource.hold()
    with refused:
        resource.hear("alice", resource.commitment(resource.agreement(offer, user="mallory")))
    resource.commit(offer)
    resource.hear("bank", c.PaymentMade("a1", "t1", offer.cost))
    with refused:
        resource.hear(
            "alice",
            Signed(ContractChange("a1", 0, offer.offer_id, "mallory", "res", "bank", 1, reason="no"), ("alice",)),
        )
    assert resource.state(offer) == "sold"


@pytest.mark.parametrize("signers", [each for each in SIGNERS if each != BOTH])
def test_a_user_takes_no_other_proof_than_both_signatures(signers: tuple[str, ...], alice: Any, refused: Any) -> None:
    alice.committed()
    agreement = alice.confirmation.agreements[0]
    with refused:
        alice.hear("res1", alice.proof(agreement=Signed(agreement, signers)))
    assert alice.outcome is None
    alice.hear("res1", alice.proof())
    assert alice.outcome is not None
