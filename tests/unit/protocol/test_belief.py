"""No party changes anything on a message that is not its sender's own word in the right role, whatever state it is in.

Every sealed kind of content is said to every party in many states: unsealed, under another's seal, under a seal for
another receiver, in every wrong role, too old and from the future. As a control, the same message under the right seal
does change something in some state, where that kind is for that party at all.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import ROLES_OF, SEALED, Message, Performative
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.model.contents.jobs import Delivery, JobState
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.seal import Role
from ramp.model.sizes.amended import first_state
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.belief import said_by, sealed_by, sealed_lately
from ramp.protocol.timing import Timing
from tests.agreements import change_of
from tests.unit.protocol.conftest import PARTIES, ROLES, seal_of, sealed

AGE = Timing().message_age
NOW = 1 * SECOND
UNTIL = 2 * MINUTE
LINE = c.OrderLine("a1", "res1", 96_000)

HARM = fx.Persist | fx.SaveAgreement | fx.Report | fx.AskMachine | fx.AskLedger
"""Effects that a message must not have without being believed; also for a quote a machine is at work."""

SPEAKER = {role: name for name, role in reversed(ROLES.items())} | {Role.RESOURCE: "res1"}
"""Of each role a party that speaks."""

# -- the parties in their states -------------------------------------------------------------------------------------


def _resource(make: Callable[[], Any], *steps: str) -> Any:
    one = make()
    if not steps:
        one.call()
    *before, last = steps or ("",)
    one.go(*before)
    one.party.handle(ev.ClockAsked("clock-1"), 0)
    if last == "grow":
        one.hear("alice", _call("a1"), performative=Performative.CFP)
        one.hear("alice", Signed(_amendment(one, 32), ("alice",)))
    elif last == "amend":
        body = _amendment(one)
        one.hear("alice", Signed(body, ("alice",)))
        one.answered(one.party.tick(body.effective_at), body.effective_at)
    elif last:
        one.go(last)
    return one


def _call(agreement_id: str) -> c.ChangeCall:
    """At what price is there as much again?"""
    return c.ChangeCall(agreement_id, 1, 32, 2 * HOUR, 70)


def _priced(agreement_id: str, bought: Agreement | None) -> c.ChangePriced:
    """The price of what a buyer has called for, in the words that name it."""
    if bought is None:
        return c.ChangePriced(agreement_id, 1, 60, MINUTE, 32, 0, "")
    digest = first_state(bought).digest
    return c.ChangePriced(agreement_id, 1, 60, MINUTE, 32, bought.offer.end, digest)


def _amendment(one: Any, cores: int = 8) -> ContractChange:
    """Another size of the slot of `OneResource` that is sold first, at the most that its buyer would pay."""
    return change_of(one.first.agreed, cores, price=_call("a1").cpu_hour_cost)


def _bank(make: Callable[[], Any], *steps: str) -> Any:
    one = make()
    for step in steps:
        if step == "order":
            one.order()
        elif step == "post":
            one.countersign(one.line())
    return one


def _directory(make: Callable[[], Any], *steps: str) -> Any:
    one = make()
    if "registered" in steps:
        one.register("res1", 5)
    return one


def _keeper(make: Callable[[], Any], *_: str) -> Any:
    one = make()
    one.party.handle(ev.KeeperAsked(c.DepositOrder("d1", "alice", 5, "")), 0)
    one.party.handle(ev.KeeperAsked(c.RefundOrder("a1", "the machine was down")), 0)
    one.party.handle(ev.KeeperAsked(c.OverviewQuery("v1", None, None)), 0)
    return one


STATES: dict[str, list[Callable[..., Any]]] = {
    "res": [
        lambda make, s=steps: _resource(make, *s)
        for steps in (
            (),
            ("hold",),
            ("hold", "commit"),
            ("hold", "commit", "pay"),
            ("hold", "commit", "pay", "move"),
            ("hold", "commit", "pay", "cancel"),
            ("hold", "commit", "pay", "amend"),
            ("hold", "commit", "pay", "grow"),
            ("hold", "commit", "void"),
        )
    ],
    "alice": [
        lambda make, s=steps: make().go(*s)
        for steps in (
            ("ask the bank", "ask the directory", "ask for the time"),
            ("auction",),
            ("auction", "grant"),
            ("commit",),
            ("commit", "fail"),
            ("commit", "settle"),
            ("commit", "settle", "cancel"),
            ("commit", "settle", "cancel", "not cancelled"),
            ("commit", "settle", "shrink"),
            ("commit", "settle", "shrink", "not changed"),
            ("commit", "settle", "grow"),
        )
    ],
    "bank": [lambda make, s=steps: _bank(make, *s) for steps in ((), ("order",), ("order", "post"))],
    "directory": [lambda make, s=steps: _directory(make, *s) for steps in ((), ("registered",))],
    "keeper": [lambda make: _keeper(make)],
}


def fingerprint(one: Any) -> Any:
    """What of a party's state others can tell apart."""
    party = one.party
    match party.name:
        case "res":
            states = [each.state for each in party.participants.values()]
            return (
                states,
                dict(party._entry._numbers),
                party._seller.offer(OFFER, 0),
                party.clock,
                party._tending.deadline,
                len(party._tending._notices),
                [each.deadline for each in party._tending._notices.values()],
                party.sizes.open,
                [each.deadline for each in party.sizes._open.values()],
            )
        case "alice":
            requests = {key: (each.stage, each.deadline) for key, each in party.purchases.items()}
            agreements = {key: party.agreement_state(key) for key in party.agreements}
            return requests, agreements, party.doubts(), party.deadline, party.clock, dict(party.moves.last)
        case "directory":
            return party.registered, party.changes, sorted((k, e.number) for k, e in party._entries.items())
        case "bank":
            return dict(party._open)
    return party.deadline


OFFER = "offer-res-1"

# -- what is said ----------------------------------------------------------------------------------------------------


def samples(name: str, one: Any) -> dict[type, Any]:
    """Of each sealed kind one content that a party may be waiting for."""
    mine = name == "alice"
    agreement_id = "agreement-alice-1" if mine else "a1"
    offer_id = "offer-res1-1" if mine else OFFER
    bought = one.party.agreements.get(agreement_id) if mine else None
    paid = c.PaymentMade(agreement_id, "t1", 80_000)
    vote = c.FundsReserved("o1", "alice", (LINE,), UNTIL, UNTIL, 0)
    made: list[Any] = [
        c.Acceptance("r1", offer_id),
        c.HoldGranted("r1", offer_id, "R", UNTIL),
        c.HoldRefused("r1", offer_id, RefusalCode.SLOT_TAKEN),
        c.HoldCancelled("r1", offer_id),
        c.PaymentOrder("o9" if name == "bank" else "o1", (LINE,), UNTIL),
        vote,
        c.OrderRefused("order-alice-1", "insufficient_funds"),
        c.OrderWithdrawal("o1", UNTIL, "no"),
        c.OrderPosted("order-alice-1", (paid,)),
        c.OrderVoided("order-alice-1", "expired"),
        c.Confirmed(agreement_id, offer_id),
        paid,
        c.PaymentRefused(agreement_id, "withdrawn"),
        c.AccountQuery("n1", "alice"),
        c.AccountStatement("q", "alice", 1, 0, 0, 0),
        c.RequestRefused("q" if mine else "d1", "unknown_account"),
        c.DepositOrder("d2", "alice", 5),
        c.RefundOrder(agreement_id, "the machine was down"),
        c.DepositMade("d1", "t", 5),
        c.OverviewQuery("v2"),
        c.MarketOverview("v1", 0),
        c.ClockReading("clock-1", 0),
        c.Registration("resource-trader", 15 * SECOND, 9),
        c.Registered("resource-trader", 10**18),
        c.Deregistration("resource-trader", 9),
        c.DirectoryListing("l", "resource-trader", ("res1",)),
        c.JobOrder("j1", agreement_id, 16, 1, 0, ("true",)),
        c.JobInputPiece("j1", agreement_id, 0, "QQ=="),
        c.JobQuery("j1", agreement_id),
        c.JobCancellation("j1", agreement_id),
        c.JobOutputQuery("j1", agreement_id, "stdout", 0),
        c.JobStatus("j1", agreement_id, JobState.RUNNING, "local", "alice", 0, Delivery.PENDING),
        c.JobRefused("j1", agreement_id, "unknown_job"),
        c.JobOutput("j1", agreement_id, "stdout", 0, 0, False, ""),
        c.SlotMoved(agreement_id, bought.reservation_id if bought else "R", "n[2-3]", 1),
        c.SlotMoveHeard(agreement_id, 1),
        c.EnrolmentGranted("i1", "PEM"),
        c.RevocationNotice("q", 1, "PEM", "left"),
        c.ChangeAgreed(agreement_id, 1),
        c.ChangeRefused(agreement_id, 1, "cannot_resize"),
        c.ChangeWithdrawal(agreement_id, 1),
        _call(agreement_id),
        _priced(agreement_id, bought if mine else None),
    ]
    found = {type(each): each for each in made}
    if mine and "r1" in one.party.purchases and one.confirmation is not None:
        agreement = one.confirmation.agreements[0]
        line = c.OrderLine(agreement.agreement_id, agreement.resource, agreement.cost, agreement.offer.offer_id)
        found[c.FundsReserved] = c.FundsReserved("order-alice-1", "alice", (line,), UNTIL, agreement.valid_until, 0)
        found[c.Settled] = one.proof()
        proposed = one.party.changes.history.proposal(agreement_id, 1)
        if proposed is not None:
            amended = Signed(proposed, ("alice", "res1"))
            posted = c.ChangePosted(agreement_id, 1, "t3", proposed.amount)
            found[c.ChangePosted] = posted
            found[c.ChangeDone] = c.ChangeDone(amended, posted, seal_of(posted, "bank", "res1"))
    if name == "res":
        if one.party.sizes.open:
            found[c.ChangePosted] = c.ChangePosted(agreement_id, 1, "t3", -_amendment(one).refund)
        offer = one.party.participants.get(OFFER)
        found[c.Commitment] = one.commitment(one.agreement((offer or one.party._seller.offer(OFFER, 0)).offer))
    elsewhere = Signed(ContractChange("a1", 0, "o", "alice", "res1", "bank", 0, reason=""), ("alice",))
    found.setdefault(c.Settled, c.Settled("a1", "o", elsewhere, paid, seal_of(paid, "bank", "res1")))
    found.setdefault(c.Commitment, c.Commitment(elsewhere, vote, seal_of(vote, "bank", "alice")))
    posted = c.ChangePosted(agreement_id, 1, "t3", -5)
    found.setdefault(c.ChangePosted, posted)
    found.setdefault(c.ChangeDone, c.ChangeDone(elsewhere, posted, seal_of(posted, "bank", "res1")))
    assert found.keys() == SEALED
    ends = (c.ChangePosted(agreement_id, 0, "t2", -5), c.ChangeRefused(agreement_id, 0, "started"))
    return {kind: (each, *(end for end in ends if type(end) is kind)) for kind, each in found.items()}


def role_at(name: str, kind: type) -> Role:
    """In which role a party hears a kind; users and resources both cancel holds and ask for accounts, and resources
    and banks both refuse amendments. Banks refuse what owners and keepers ask."""
    roles = ROLES_OF[kind]
    if len(roles) == 1:
        return next(iter(roles))
    if kind is c.RequestRefused or (kind is c.ChangeRefused and name == "res"):
        return Role.BANK
    return Role.RESOURCE if name == "alice" else Role.USER


def message_to(name: str, kind: type, content: Any) -> Message:
    role = role_at(name, kind)
    conversation = "l" if kind is c.DirectoryListing else "r1"
    return Message(Performative.INFORM, SPEAKER[role], name, conversation, content, reply_with="w")


def forgeries(name: str, message: Message) -> Iterator[tuple[str, Message]]:
    role = role_at(name, type(message.content))
    right = sealed(message, role, NOW)
    assert right.seal is not None
    yield "unsealed", message
    yield "another's", replace(message, seal=replace(right.seal, signer="mallory"))
    yield "for another", replace(message, seal=replace(right.seal, receiver="mallory"))
    for wrong in set(Role) - ROLES_OF[type(message.content)]:
        yield f"as {wrong.value}", sealed(message, wrong, NOW)


BEGINNINGS = {
    "res": {c.Acceptance, c.HoldCancelled, c.ChangeCall},
    "bank": {
        c.PaymentOrder,
        c.OrderWithdrawal,
        c.AccountQuery,
        c.DepositOrder,
        c.RefundOrder,
        c.OverviewQuery,
        c.ChangeWithdrawal,
    },
    "directory": {c.Registration, c.Deregistration},
}
"""Kinds that begin something, so that an old one must not."""

MATTERS: dict[str, set[type]] = {
    "res": BEGINNINGS["res"]
    | {c.Commitment, c.PaymentMade, c.PaymentRefused, c.ChangePosted, c.ChangeRefused, c.Registered, c.ClockReading}
    | {c.SlotMoveHeard, c.ChangeAgreed, c.ChangeWithdrawal},
    "alice": {
        c.HoldGranted,
        c.HoldRefused,
        c.FundsReserved,
        c.OrderRefused,
        c.OrderPosted,
        c.OrderVoided,
        c.Confirmed,
        c.Settled,
        c.AccountStatement,
        c.RequestRefused,
        c.ClockReading,
        c.DirectoryListing,
        c.SlotMoved,
        c.ChangePriced,
        c.ChangeAgreed,
        c.ChangeRefused,
        c.ChangePosted,
        c.ChangeDone,
    },
    "bank": BEGINNINGS["bank"],
    "directory": BEGINNINGS["directory"],
    "keeper": {c.DepositMade, c.ChangePosted, c.RequestRefused, c.MarketOverview},
}
"""What each party acts on in some state, by the tables of the protocol."""


COSTLY = ("alice", "res")
"""They have the most states and kinds, and are tried in `make slow`."""


def changed(one: Any, message: Message) -> bool:
    before = fingerprint(one)
    try:
        effects = one.party.handle(message, NOW)
    except RemoteProtocolError:
        effects = []
    return any(isinstance(effect, HARM) for effect in effects) or fingerprint(one) != before


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in COSTLY else []) for name in sorted(STATES)]
)
def test_nothing_changes_without_the_right_seal(name: str) -> None:
    matters = set()
    for build in STATES[name]:
        for kind in sorted(SEALED, key=lambda each: each.__name__):
            for index in range(len(samples(name, build(PARTIES[name]))[kind])):
                one = build(PARTIES[name])
                message = message_to(name, kind, samples(name, one)[kind][index])
                for told, forged in forgeries(name, message):
                    assert not changed(one, forged), (kind.__name__, told)
                if changed(one, sealed(message, role_at(name, kind), NOW)):
                    matters.add(kind)
    assert matters == MATTERS[name]


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, kinds in BEGINNINGS.items() for kind in sorted(kinds, key=str)]
)
def test_what_begins_something_is_believed_while_it_is_fresh(name: str, kind: type) -> None:
    """Right is at most `message_age` apart in either direction, so that clocks may differ that much."""
    fresh = []
    for at in (NOW - AGE - 1, NOW - AGE, NOW + AGE, NOW + AGE + 1):
        acted = False
        for build in STATES[name]:
            one = build(PARTIES[name])
            message = message_to(name, kind, samples(name, one)[kind][0])
            acted = acted or changed(one, sealed(message, role_at(name, kind), at))
        fresh.append(acted)
    assert fresh == [False, True, True, False]


def test_everything_sealed_has_its_roles() -> None:
    assert ROLES_OF.keys() >= SEALED
    assert all(ROLES_OF[kind] for kind in SEALED)


QUERY = Message(Performative.QUERY_REF, "alice", "bank", "r1", c.AccountQuery("n", "alice"))


def test_the_reasons_name_what_is_wrong() -> None:
    right = sealed(QUERY)
    with pytest.raises(RemoteProtocolError, match="AccountQuery is not sealed"):
        sealed_by(QUERY, Role.USER)
    with pytest.raises(RemoteProtocolError, match="is sealed by another party"):
        sealed_by(replace(right, sender="mallory"), Role.USER)
    with pytest.raises(RemoteProtocolError, match="must come from a keeper; alice is certified as user"):
        sealed_by(right, Role.KEEPER)
    with pytest.raises(RemoteProtocolError, match="alice may not speak for bank"):
        said_by(right, "bank", Role.USER)
    with pytest.raises(RemoteProtocolError, match="expected at most 300 s apart, check both clocks"):
        sealed_lately(right, Role.USER, AGE + 1, Timing())
    assert sealed_lately(right, Role.USER, AGE, Timing()) == right.seal
