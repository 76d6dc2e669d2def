"""The Resource Agent against copies, strangers, lies, and buyers who pay nothing."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import ContractChange, Signed
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.request import RequestForQuotation, TotalCores
from ramp.model.seal import Role
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.resource import party
from ramp.protocol.resource.slots import kept_participants as resource_party
from ramp.protocol.timing import Timing
from tests.unit.protocol.conftest import (
    UNIT,
    OneResource,
    archived,
    contents,
    messages,
    records,
    resource_with,
    restarted_resource,
)


def test_a_call_that_rests_is_answered_from_the_start_when_it_comes_again(resource: Any) -> None:
    call = c.CallForProposals("r9", 1, RequestForQuotation((UNIT,)))
    message = Message(Performative.CFP, "alice", "res", "r9", call, reply_with="w")

    def called() -> list[fx.Effect]:
        return list(resource.party.handle(message, 0))

    (quoting,) = called()
    assert isinstance(quoting, fx.QuoteSlots)
    assert called() == []  # the machine is at work on it
    resource.party.forget(quoting.call_id)
    assert [type(each) for each in called()] == [fx.QuoteSlots]


def test_of_too_many_questions_about_the_machine_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party, "DESCRIBING_MAX", 1)
    one = OneResource()
    asked = [each.call_id for name in ("q1", "q2") for each in one.hear("alice", c.MachineQuery(name, HOUR))]
    told = [contents(one.party.handle(ev.MachineDescribed(call_id, "{}"), 0)) for call_id in asked]
    assert [len(each) for each in told] == [0, 1]


# -- voting ----------------------------------------------------------------------------------------------------------


def test_a_rejected_offer_cannot_be_accepted(resource: Any) -> None:
    offer = resource.call().content.offers[0]
    assert resource.hear("alice", c.Rejection("r1", offer.offer_id, "lost")) == []
    (refused,) = contents(resource.hear("alice", c.Acceptance("r1", offer.offer_id)))
    assert (type(refused), refused.code) == (c.HoldRefused, RefusalCode.UNKNOWN_OFFER)


@pytest.mark.parametrize(("by", "left"), [(2 * HOUR, 1), (-2 * HOUR, 1), (-2 * HOUR, 0), (2 * HOUR, 0)])
def test_an_offer_stands_as_long_as_it_said_whatever_the_clock_is_set_to(resource: Any, by: int, left: int) -> None:
    offer = resource.call().content.offers[0]
    resource.party.clock_set(by)
    now = Timing().offer_validity - left + by
    (answer,) = contents(resource.hear("alice", c.Acceptance("r1", offer.offer_id), now))
    assert isinstance(answer, c.HoldGranted if left else c.HoldRefused)


def test_a_hold_is_let_go_by_its_user_only(resource: Any) -> None:
    offer, _ = resource.hold()
    with pytest.raises(RemoteProtocolError, match="another user"):
        resource.hear("mallory", c.HoldCancelled("r1", offer.offer_id))
    assert resource.state(offer) == "held"
    assert fx.ReleaseSlot(offer.offer_id) in resource.hear("alice", c.HoldCancelled("r1", offer.offer_id))


def test_of_slots_that_are_not_paid_only_those_count_that_are_still_held() -> None:
    one = resource_with(holds_max=2)
    first, *_ = [one.hold(request_id)[0] for request_id in ("r1", "r2")]
    one.hear("alice", c.HoldCancelled("r1", first.offer_id))
    votes = [contents(one.hold(request_id)[1])[-1] for request_id in ("r3", "r4")]
    assert [type(each) for each in votes] == [c.HoldGranted, c.HoldRefused]


def test_what_the_machine_has_of_a_slot_that_was_let_go_meanwhile_is_not_asked_again(resource: Any) -> None:
    offer = resource.call().content.offers[0]
    resource.answered = lambda effects, now: effects
    resource.hear("alice", c.Acceptance("r1", offer.offer_id))
    resource.party.handle(ev.SlotHeld(offer.offer_id, ev.MachineInDoubt("no answer")), SECOND)
    resource.party.tick(2 * SECOND)
    resource.hear("alice", c.HoldCancelled("r1", offer.offer_id), 3 * SECOND)
    assert resource.party.handle(ev.SlotLookedUp(offer.offer_id, ev.MachineInDoubt("down")), 4 * SECOND) == []
    assert resource.party.participants[offer.offer_id].deadline is None


# -- the agreement and the bank's vote -------------------------------------------------------------------------------

DIFFERS = "the parties differ from those agreed"
WRONG_AGREEMENTS = [
    ({"bank": "mallorys-bank"}, DIFFERS),
    ({"resource": "other"}, DIFFERS),
    ({"cost": 1}, "the cost differs from what was agreed"),
    ({"reservation_id": "R-other"}, "the reservation id differs from what was agreed"),
    ({"request_id": "r2"}, "the request differs from what was agreed"),
]


def rejected(resource: Any, offer: Any, commitment: c.Commitment) -> str:
    """What a commitment is refused for; nothing is written, nothing becomes firm, nothing worth a refund is sealed."""
    effects = resource.hear("alice", commitment)
    assert [type(effect) for effect in effects] == [fx.Send]
    (refused,) = contents(effects)
    assert (type(refused), refused.code) == (c.HoldRefused, RefusalCode.BAD_AGREEMENT)
    assert resource.state(offer) == "held"
    return str(refused.detail)


@pytest.mark.parametrize(("change", "told"), WRONG_AGREEMENTS, ids=str)
def test_an_agreement_must_be_what_was_agreed(resource: Any, change: dict[str, Any], told: str) -> None:
    offer, _ = resource.hold()
    assert rejected(resource, offer, resource.commitment(resource.agreement(offer, **change))) == told
    dearer = resource.agreement(replace(offer, cpu_hour_cost=offer.cpu_hour_cost + 1))
    assert rejected(resource, offer, resource.commitment(dearer)) == "the offer differs from what was agreed"


@pytest.mark.parametrize(
    "change",
    [
        {"number": 2},
        {"deadline": 9 * HOUR},
        {"cores": TotalCores(1)},
        {"not_before": 0},
        {"wall_time": HOUR // 2},
        {"operating_system": "Linux"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_agreements_unit_is_that_of_the_call(resource: Any, change: dict[str, Any]) -> None:
    """The asking price apart, which falls from round to round while the agreement has the user's own."""
    offer, _ = resource.hold()
    unit = replace(resource.agreement(offer).request, **change)
    told = rejected(resource, offer, resource.commitment(resource.agreement(offer, request=unit)))
    assert told == "the unit differs from what was agreed"


LINE = c.OrderLine("a1", "res", 104_000, "offer-res-1")


@pytest.mark.parametrize(
    "change",
    [
        {"order_id": "order-2"},
        {"user": "mallory"},
        {"lines": (c.OrderLine("a2", "res", 104_000, "offer-res-1"),)},
        {"lines": (c.OrderLine("a1", "other", 104_000, "offer-res-1"),)},
        {"lines": (c.OrderLine("a1", "res", 103_999, "offer-res-1"),)},
        {"lines": (c.OrderLine("a1", "res", 104_001, "offer-res-1"),)},
        {"lines": (c.OrderLine("a1", "res", 104_000, "offer-res-2"),)},
        {"lines": ()},
        {"lines": (LINE, c.OrderLine("a2", "other", 1))},
        {"valid_until": 2 * MINUTE - 1},
        {"valid_until": 2 * MINUTE + 1},
    ],
    ids=str,
)
def test_no_slot_is_firm_without_the_banks_vote_for_it(resource: Any, change: dict[str, Any]) -> None:
    offer, _ = resource.hold()
    assert offer.cost == LINE.cost  # 65 credits for each of 16 core hours
    rejected(resource, offer, resource.commitment(resource.agreement(offer), vote=change))


@pytest.mark.parametrize(
    "change",
    [{"signer": "alice"}, {"signer": "res"}, {"role": Role.KEEPER}, {"role": Role.USER}, {"receiver": "mallory"}],
    ids=str,
)
def test_the_vote_is_the_banks_own_word_to_the_buyer(resource: Any, change: dict[str, Any]) -> None:
    offer, _ = resource.hold()
    rejected(resource, offer, resource.commitment(resource.agreement(offer), seal=change))


def test_a_single_unit_cannot_pass_for_one_of_two(resource: Any) -> None:
    """Attack A4: the order has one line, the agreement says that it has two."""
    offer, _ = resource.hold()
    commitment = resource.commitment(resource.agreement(offer, units_total=2), vote={"lines": (LINE,)})
    assert rejected(resource, offer, commitment) == "the order has 1 units, expected 2"


def test_one_agreement_id_buys_one_slot(resource: Any) -> None:
    first, _ = resource.hold("r1")
    second, _ = resource.hold("r2")
    resource.commit(first)
    (refused,) = contents(resource.commit(second))
    assert (type(refused), refused.code) == (c.HoldRefused, RefusalCode.BAD_AGREEMENT)
    assert "another slot is already sold" in refused.detail
    assert resource.state(second) == "held"
    stranger = resource.agreement(replace(second, offer_id="offer-that-never-was"), "a2")
    (refused,) = contents(resource.hear("alice", resource.commitment(stranger)))
    assert (type(refused), refused.code) == (c.HoldRefused, RefusalCode.UNKNOWN_OFFER)
    assert "no slot is held" in refused.detail


@pytest.mark.parametrize("paid", [False, True])
def test_a_slot_that_is_sold_is_not_sold_again_under_another_agreement(resource: Any, paid: bool) -> None:
    """All the same: buyer, offer and terms, and the bank has money aside for the second too."""
    offer, _ = resource.hold()
    resource.commit(offer)
    if paid:
        resource.hear("bank", c.PaymentMade("a1", "t1", offer.cost))
    state = resource.state(offer)
    (refused,) = contents(resource.commit(offer, agreement_id="a2"))
    assert (type(refused), refused.code) == (c.HoldRefused, RefusalCode.BAD_AGREEMENT)
    assert refused.detail == "the slot is already sold under another agreement"
    assert resource.state(offer) == state


@pytest.mark.parametrize("when", ["before", "after"])
def test_nothing_that_is_signed_for_a_buyer_buys_a_sold_slot_back(resource: Any, when: str) -> None:
    """A failure with the resource's signature is worth a refund at any time, so no bad commitment may bring one about.

    The agreement id is put on an offer that is not held, on one that is held for another request, and on wrong terms,
    before and after the slot is sold under it.
    """
    offer, _ = resource.hold("r1")
    other, _ = resource.hold("r2")
    if when == "after":
        resource.commit(offer)
        resource.hear("bank", c.PaymentMade("a1", "t1", offer.cost))
    tried = [
        resource.agreement(replace(offer, offer_id="offer-that-never-was")),
        *(resource.agreement(offer, **change) for change, _ in WRONG_AGREEMENTS),
        resource.agreement(other, cost=1),
    ]
    answers = [content for each in tried for content in contents(resource.hear("alice", resource.commitment(each)))]
    resource.hear("alice", c.HoldCancelled("r2", other.offer_id))
    answers += contents(resource.hear("alice", resource.commitment(resource.agreement(other))))
    assert [type(each) for each in answers] == [c.HoldRefused] * (len(tried) + 1)
    if when == "before":
        resource.commit(offer)
    assert resource.state(offer) in ("settling", "sold")


# -- the bank --------------------------------------------------------------------------------------------------------


def test_a_buyer_who_lets_a_firm_slot_go_makes_the_resource_ask_the_bank(resource: Any) -> None:
    offer, _ = resource.hold()
    resource.commit(offer)
    (asked,) = contents(resource.hear("alice", c.HoldCancelled("r1", offer.offer_id)))
    assert isinstance(asked, Signed)
    assert resource.state(offer) == "settling"


def test_after_a_restart_the_bank_is_asked_at_once(resource: Any) -> None:
    """It may have refunded on the buyer's word alone while the agent was away."""
    resource.sell()
    journal = list(resource.journal)
    again, effects = restarted_resource(journal, 10 * SECOND)
    assert c.PaymentQuery("a1") in contents(effects)
    effects = again.hear("bank", c.ChangePosted("a1", 0, "t2", -104_000), 11 * SECOND)
    assert [each.record.refund for each in effects if isinstance(each, fx.Persist)] == [104_000]
    _, effects = restarted_resource(journal, 2 * HOUR)  # the slot is over
    assert c.PaymentQuery("a1") not in contents(effects)


# -- changes ---------------------------------------------------------------------------------------------------------


def cancellation(offer: Any, agreement_id: str = "a1", number: int = 0) -> Signed:
    body = ContractChange(agreement_id, number, offer.offer_id, "alice", "res", "bank", 0, reason="not needed")
    return Signed(body, signers=("alice",))


every_change = pytest.mark.parametrize("number", [0, 1], ids=["cancellation", "resize"])


@every_change
def test_a_change_names_a_slot_that_is_sold_and_its_agreement(resource: Any, number: int) -> None:
    sold, (held, _) = resource.sell(), resource.hold("r2")
    for offer, agreement_id in ((sold, "a-of-somebody-else"), (held, "a1"), (replace(sold, offer_id="other"), "a1")):
        (refused,) = contents(resource.hear("alice", cancellation(offer, agreement_id, number)))
        assert (type(refused), refused.number, refused.code) == (c.ChangeRefused, number, "unknown_agreement")
    assert resource.state(sold) == "sold"


@every_change
def test_only_the_buyer_changes_what_is_sold(resource: Any, refused: Any, number: int) -> None:
    offer = resource.sell()
    signed = cancellation(offer, number=number)
    wrong = [replace(signed, signers=signers) for signers in (("mallory",), ("alice", "res"), ())]
    for each in (*wrong, replace(signed, body=replace(signed.body, user="mallory"))):
        with refused:
            resource.hear("alice", each)
    assert (resource.state(offer), resource.party.sizes.open) == ("sold", ())


def test_a_slot_is_not_given_back_at_its_start(resource: Any) -> None:
    offer = resource.sell()
    (refused,) = contents(resource.hear("alice", cancellation(offer), offer.start))
    assert (type(refused), refused.code) == (c.ChangeRefused, "started")
    assert type(contents(resource.hear("alice", cancellation(offer), offer.start - 1))[0]) is Signed


def test_a_cancellation_that_the_bank_refuses_is_over_also_after_a_restart(resource: Any) -> None:
    offer = resource.go("hold", "commit", "pay", "cancel").first.offer
    resource.hear("bank", c.ChangeRefused("a1", 0, "started"))
    again, _ = restarted_resource(resource.journal, SECOND)
    assert resource.state(offer) == again.state(offer) == "sold"


@pytest.mark.parametrize(
    ("until", "sender", "content", "code", "refund"),
    [
        ("held", "alice", c.HoldCancelled("r1", "offer-res-1"), "cancelled", 0),
        ("firm", "bank", c.PaymentRefused("a1", "no_funds"), "payment_refused", 0),
        ("sold", "bank", c.ChangePosted("a1", 0, "t2", -7), "cancelled", 7),
        ("lost", "bank", c.ChangePosted("a1", 0, "t2", -7), "machine_unavailable", 7),
    ],
)
def test_a_release_is_recorded_with_the_word_that_caused_it(
    resource: Any, until: str, sender: str, content: Any, code: str, refund: int
) -> None:
    offer, _ = resource.hold()
    assert offer.offer_id == "offer-res-1"
    if until != "held":
        (asked,) = messages(resource.commit(offer), Signed)
        assert (asked.receiver, asked.reply_with) == ("bank", "a1")
    if until in ("sold", "lost"):
        resource.hear("bank", c.PaymentMade("a1", "t1", offer.cost))
    if until == "lost":
        lost = resource.party.handle(ev.SlotsTended(((offer.offer_id, "it burns"),)), SECOND)
        told = [(each.receiver, each.in_reply_to) for each in messages(lost, Signed)]
        assert told == [("alice", offer.offer_id), ("bank", "")]
    (released,) = records(resource.hear(sender, content, SECOND))
    assert (str(released.code), released.refund, released.seal.signer) == (code, refund, sender)
    assert released.agreement_id == ("" if until == "held" else "a1")


def test_a_hold_that_ends_by_itself_is_nobodys_word(resource: Any) -> None:
    offer, _ = resource.hold()
    until = resource.party.participants[offer.offer_id].until
    (granted,) = contents(resource.hear("alice", c.Acceptance("r1", offer.offer_id), until))
    assert granted.hold_for == 0
    (released,) = records(resource.party.tick(until))
    assert (released.seal, released.refund, released.agreement_id) == (None, 0, "")


def test_a_slot_that_is_paid_at_its_start_is_not_asked_about_at_its_start(resource: Any) -> None:
    offer, _ = resource.hold()
    resource.commit(offer)
    resource.hear("bank", c.PaymentMade("a1", "t1", offer.cost), offer.start)
    assert resource.party.participants[offer.offer_id].deadline is None


def test_a_hold_that_was_asked_for_before_a_restart_ends_in_time(resource: Any) -> None:
    offer, effects = resource.hold()
    again = type(resource)()
    again.party.recover(records(effects)[:1], SECOND)  # the machine's answer is not on record
    participant = again.party.participants[offer.offer_id]
    assert participant.deadline == participant.until


# -- what is over ------------------------------------------------------------------------------------------------------


def test_what_the_machine_has_not_given_back_yet_stays_and_keeps_nothing_else(resource: Any) -> None:
    offers = [resource.hold(request_id, cores=1)[0].offer_id for request_id in ("r1", "r2", "r3")]
    for request_id, offer_id in zip(("r1", "r2", "r3"), offers, strict=True):
        resource.hear("alice", c.HoldCancelled(request_id, offer_id))
    for offer_id in offers[1:]:
        resource.party.handle(ev.SlotFreed(offer_id, None), 0)
    over = Timing().retention
    assert archived(resource.party.tick(over)) == offers[1:]
    resource.party.handle(ev.SlotFreed(offers[0], None), over)
    assert archived(resource.party.tick(2 * over)) == offers[:1]


def test_a_sale_that_was_released_and_forgotten_is_not_known_under_its_agreement(
    resource: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource_party, "RELEASED_MAX", 1)
    first, second = (resource.hold(request_id, cores=16)[0] for request_id in ("r1", "r2"))
    resource.commit(first)
    resource.hear("bank", c.PaymentRefused("a1", "withdrawn"))
    assert contents(resource.hear("bank", c.ChangePosted("a1", 0, "t2", -1))) == []
    resource.hear("alice", c.HoldCancelled("r2", second.offer_id))
    third, _ = resource.hold("r3")
    resource.commit(third)  # under the same id: the bank, which never forgets, does not pay it twice
    assert resource.state(third) == "settling"


def test_a_sale_stays_at_hand_until_the_bank_has_said_that_it_stands(resource: Any) -> None:
    offer = resource.sell()
    resource.party.tick(offer.start)
    over = offer.end + Timing().retention
    assert archived(resource.party.tick(over)) == []
    resource.hear("bank", c.PaymentMade("a1", "t1", offer.cost), over)
    assert archived(resource.party.tick(over + Timing().retention)) == [offer.offer_id]


# -- the rest --------------------------------------------------------------------------------------------------------


def test_registrations_are_numbered_upwards_and_above_what_the_directory_knows(resource: Any) -> None:
    (first,) = contents(resource.party.start(100))
    (second,) = contents(resource.party.tick(resource.party.deadline))
    assert second.number > first.number
    resource.hear("directory", c.Registered("resource-trader", 10**12))
    (third,) = contents(resource.party.tick(resource.party.deadline))
    assert third.number == 10**12 + 1
    (leaving,) = contents(resource.party.leave(200))
    assert leaving.number == 10**12 + 2
    with pytest.raises(RemoteProtocolError):
        resource.hear("mallory", c.Registered("resource-trader", 10**15))
    assert resource.party._entry._numbers == {"directory": 10**12 + 2}
