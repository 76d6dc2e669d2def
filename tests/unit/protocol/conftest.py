"""Parts of a market for tests of single machines: each party alone, and everything that it hears said by the test."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest

from ramp.errors import RemoteProtocolError
from ramp.ledger.entry import AccountKind
from ramp.model import contents as c
from ramp.model.acl import SEALED, Message, Performative
from ramp.model.agreement import Agreement, ContractChange, Signed, end_of
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.seal import Role, Seal
from ramp.model.slot import Reservation, Slot, SlotMove, StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.bank.keeper_party import KeeperParty
from ramp.protocol.bank.party import BankParty
from ramp.protocol.directory.party import DirectoryParty
from ramp.protocol.effects import ResizeSlot
from ramp.protocol.events import AgreementResized, SlotResized
from ramp.protocol.pricing import paper_price
from ramp.protocol.records import Record
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.party import ResourceParty
from ramp.protocol.resource.quotas import Quotas
from ramp.protocol.resource.seller import PriceRange, Seller
from ramp.protocol.rules.auction_rule import AuctionRule
from ramp.protocol.rules.checked_rule import RuleBook
from ramp.protocol.timing import Timing
from ramp.protocol.user.party import UserParty
from ramp.runtime.auction_rules import RULES
from ramp.runtime.ledger.bank_ledger import BankLedger
from simulation.market.actors import CountedIds
from simulation.market.book import Book
from simulation.market.virtual_notary import VirtualNotary
from tests.agreements import agreement_of

UNIT = RequestUnit(1, 70, 3 * HOUR, TotalCores(16), not_before=HOUR, wall_time=HOUR)
UNTIL = 2 * MINUTE
"""The order's validity in these tests; every clock begins at 0."""

ROLES = {
    "alice": Role.USER,
    "bob": Role.USER,
    "eve": Role.USER,
    "mallory": Role.USER,
    "res": Role.RESOURCE,
    "res1": Role.RESOURCE,
    "res2": Role.RESOURCE,
    "res3": Role.RESOURCE,
    "bank": Role.BANK,
    "directory": Role.DIRECTORY,
    "keeper": Role.KEEPER,
    "enrolment": Role.ENROLMENT,
}


def sealed(message: Message, role: Role | None = None, at: int = 0) -> Message:
    """As its sender seals it, in its own role or another."""
    return VirtualNotary(message.sender, role or ROLES[message.sender]).seal(message, at)


def seal_of(content: Any, sender: str, receiver: str, role: Role | None = None, at: int = 0) -> Seal:
    """The seal of a message that is passed on."""
    seal = sealed(Message(Performative.INFORM, sender, receiver, "r1", content), role, at).seal
    assert seal is not None
    return seal


def messages(effects: list[Any], *kinds: type) -> list[Message]:
    """What is sent, or those of it with contents of these kinds."""
    sent = [effect.message for effect in effects if isinstance(effect, fx.Send)]
    return [each for each in sent if not kinds or isinstance(each.content, kinds)]


def contents(effects: list[Any], *kinds: type) -> list[Any]:
    return [each.content for each in messages(effects, *kinds)]


def reports(effects: list[Any], *kinds: type) -> list[Any]:
    """What owners are told, or what of it is of these kinds."""
    told = [effect.progress for effect in effects if isinstance(effect, fx.Report)]
    return [each for each in told if not kinds or isinstance(each, kinds)]


def records(effects: list[fx.Effect]) -> list[Record]:
    return [effect.record for effect in effects if isinstance(effect, fx.Persist)]


def archived(effects: list[fx.Effect]) -> list[str]:
    found = [effect.references for effect in effects if isinstance(effect, fx.Archive)]
    assert all(found), "each move to the archive waits for the disk"
    return [key for references in found for key in references]


@dataclass
class One:
    """One party that hears what the test says; whoever must seal does."""

    STEPS: ClassVar[dict[str, Callable[[Any], Any]]] = {}
    """What its owner says, or somebody else does, in a word."""

    party: Any

    def go(self, *steps: str) -> Any:
        for step in steps:
            self.STEPS[step](self)
        return self

    def hear(
        self,
        sender: str,
        content: Any,
        now: int = 0,
        *,
        performative: Performative = Performative.INFORM,
        role: Role | None = None,
        conversation: str = "r1",
    ) -> list[fx.Effect]:
        message = Message(performative, sender, self.party.name, conversation, content, reply_with="w")
        if type(content) in SEALED:
            message = sealed(message, role, now)
        return self.take(message, now)

    def take(self, message: Message, now: int = 0) -> list[fx.Effect]:
        return self.answered(self.party.handle(message, now), now)

    def answered(self, effects: list[fx.Effect], now: int) -> list[fx.Effect]:
        return effects


@dataclass
class OneResource(One):
    """A resource party whose machine has 64 cores and does whatever it is asked; `unit` is what it is called for."""

    STEPS: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "hold": lambda one: one.hold(),
        "let go": lambda one: one.hear("alice", c.HoldCancelled("r1", "offer-res-1")),
        "commit": lambda one: one.commit(one.first.offer),
        "pay": lambda one: one.hear("bank", c.PaymentMade("a1", "t1", 104_000)),
        "void": lambda one: one.hear("bank", c.PaymentRefused("a1", "withdrawn")),
        "move": lambda one: one.party.handle(ev.SlotsTended((), (("offer-res-1", SlotMove("n[2-3]", 1)),)), 0),
        "cancel": lambda one: one.hear("alice", Signed(end_of(one.first.agreed, "no", 0), ("alice",))),
    }

    party: Any = field(default_factory=lambda: new_resource(Quotas()))
    unit: RequestUnit = UNIT
    placement: str = ""
    journal: list[Record] = field(default_factory=list)

    def call(
        self, round_number: int = 1, price: int = 70, request_id: str = "r1", user: str = "alice", cores: int = 0
    ) -> Message:
        """Call for `unit`, or for it with other cores."""
        unit = replace(self.unit, cpu_hour_cost=price, cores=TotalCores(cores) if cores else self.unit.cores)
        call = c.CallForProposals(request_id, round_number, RequestForQuotation((unit,)))
        (reply,) = [each.message for each in self.hear(user, call, conversation=request_id) if type(each) is fx.Send]
        return reply

    def answered(self, effects: list[fx.Effect], now: int) -> list[fx.Effect]:
        self.journal += records(effects)
        more: list[fx.Effect] = []
        for effect in effects:
            if isinstance(effect, fx.QuoteSlots):
                slots = tuple(
                    Slot(HOUR, 2 * HOUR, unit.cores.total, 0.5, self.placement)  # type: ignore[union-attr]
                    for unit in effect.units
                )
                more += self.party.handle(ev.SlotsQuoted(effect.call_id, slots), now)
            elif isinstance(effect, fx.PriceSlots):
                prices = tuple(paper_price(question) for question in effect.questions)
                more += self.party.handle(ev.SlotsPriced(effect.call_id, prices), now)
            elif isinstance(effect, fx.HoldSlot):
                held = Reservation(effect.key, f"R-{effect.key}", effect.slot, False, effect.until)
                more += self.party.handle(ev.SlotHeld(effect.key, held), now)
            elif isinstance(effect, fx.ConfirmSlot):
                firm = Reservation(effect.key, f"R-{effect.key}", Slot(HOUR, 2 * HOUR, 16, 0.5), True, None)
                more += self.party.handle(ev.SlotConfirmed(effect.key, firm), now)
            elif isinstance(effect, ResizeSlot):
                slot = Slot(HOUR, effect.until, effect.cores, 0.5)
                resized = Reservation(effect.key, f"R-{effect.key}", slot, True, None)
                more += self.party.handle(SlotResized(effect.key, effect.step, resized), now)
        return [*effects, *self.answered(more, now)] if more else effects

    def hold(self, request_id: str = "r1", user: str = "alice", cores: int = 0, now: int = 0) -> tuple[Any, list[Any]]:
        """An offer, accepted and held."""
        offer = self.call(request_id=request_id, user=user, cores=cores).content.offers[0]  # type: ignore[union-attr]
        acceptance = c.Acceptance(request_id, offer.offer_id)
        return offer, self.hear(user, acceptance, now, conversation=request_id)

    def agreement(self, offer: Any, agreement_id: str = "a1", **changes: Any) -> Agreement:
        return agreement_of(offer, self.unit, agreement_id=agreement_id, **changes)

    def commitment(
        self, agreement: Agreement, vote: dict[str, Any] | None = None, seal: dict[str, Any] | None = None
    ) -> c.Commitment:
        """The agreement as its user signs it, with the bank's vote; both as they should be, or changed."""
        line = c.OrderLine(agreement.agreement_id, agreement.resource, agreement.cost, agreement.offer.offer_id)
        lines = (line,) * 1 if agreement.units_total == 1 else (line, c.OrderLine("a2", "other", 5))
        said = c.FundsReserved(agreement.order_id, agreement.user, lines, UNTIL, agreement.valid_until, 0)
        said = replace(said, **(vote or {}))
        bank_seal = replace(seal_of(said, "bank", agreement.user), **(seal or {}))
        return c.Commitment(Signed(agreement, (agreement.user,)), said, bank_seal)

    def commit(self, offer: Any, now: int = 0, **changes: Any) -> list[fx.Effect]:
        return self.hear("alice", self.commitment(self.agreement(offer, **changes)), now)

    def sell(self, request_id: str = "r1", agreement_id: str = "a1") -> Any:
        """An offer that is held, committed and paid."""
        offer, _ = self.hold(request_id)
        self.commit(offer, agreement_id=agreement_id)
        self.hear("bank", c.PaymentMade(agreement_id, "t1", offer.cost))
        return offer

    @property
    def first(self) -> Any:
        """What has become of the offer that was accepted first."""
        return next(iter(self.party.participants.values()))

    def state(self, offer: Any) -> str:
        return str(self.party.participants[offer.offer_id].state.value)


def new_seller(**changes: Any) -> Seller:
    """Of a machine with 64 cores."""
    given = {"terms": StaticTerms(64), "prices": PriceRange(60, 20), "source": "synthetic", **changes}
    return Seller("res", ids=CountedIds("res"), timing=Timing(), **given)


def new_resource(quotas: Quotas, launching: LaunchTerms | None = None, **selling: Any) -> ResourceParty:
    seller, settings = new_seller(launching=launching, **selling), {"quotas": quotas, "launching": launching}
    return ResourceParty("res", directories=["directory"], bank="bank", seller=seller, timing=Timing(), **settings)


def new_user(*directories: str, rules: Callable[[str], AuctionRule] = RULES.find) -> UserParty:
    around = {"bank": "bank", "directories": directories or ("directory",), "timing": Timing()}
    return UserParty("alice", ids=CountedIds("alice"), rules=RuleBook(rules), **around)


@dataclass
class OneUser(One):
    """A user party with an auction among res1 (cheaper) and res2."""

    STEPS: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "auction": lambda one: one.auction(),
        "grant": lambda one: one.grant(),
        "grant next": lambda one: one.grant("res2"),
        "vote": lambda one: one.vote(),
        "commit": lambda one: one.committed(),
        "fail": lambda one: one.hear("res1", one.failed()),
        "settle": lambda one: one.hear(one.confirmation.agreements[0].resource, one.proof()),
        "post": lambda one: one.hear("bank", one.posted()),
        "void": lambda one: one.hear("bank", c.OrderVoided(one.confirmation.order_id, "withdrawn")),
        "withdraw": lambda one: one.command(ev.RequestWithdrawn("r1")),
        "cancel": lambda one: one.command(ev.AgreementCancelled("agreement-alice-1", "no")),
        "not cancelled": lambda one: one.hear("res1", c.ChangeRefused("agreement-alice-1", 0, "not_active")),
        "refund": lambda one: one.hear("bank", c.ChangePosted("agreement-alice-1", 0, "t2", -80_000)),
        "shrink": lambda one: one.command(AgreementResized("agreement-alice-1", cores=8)),
        "grow": lambda one: one.command(AgreementResized("agreement-alice-1", cores=32)),
        "agree": lambda one: one.hear("res1", c.ChangeAgreed("agreement-alice-1", 1)),
        "not changed": lambda one: one.hear("res1", c.ChangeRefused("agreement-alice-1", 1, "cannot_resize")),
        "ask the bank": lambda one: one.command(ev.AccountAsked("q", None, None)),
        "ask the directory": lambda one: one.command(ev.ResourcesAsked("l")),
        "ask for the time": lambda one: one.command(ev.ClockAsked("clock-1")),
    }

    party: Any = field(default_factory=new_user)
    units: int = 1
    journal: list[Record] = field(default_factory=list)

    def answered(self, effects: list[fx.Effect], now: int) -> list[fx.Effect]:
        self.journal += records(effects)
        return effects

    def command(self, command: Any, now: int = 0) -> list[fx.Effect]:
        return self.answered(self.party.handle(command, now), now)

    def tick(self, now: int) -> list[fx.Effect]:
        return self.answered(self.party.tick(now), now)

    def offer(self, resource: str, price: int, unit: int = 1) -> Offer:
        return Offer(f"offer-{resource}-{unit}", "r1", unit, resource, price, HOUR, 2 * HOUR, 16, 0.5, HOUR)

    def submit(
        self, *units: RequestUnit, request_id: str = "r1", now: int = 0, rounds: int = 1, **options: Any
    ) -> list[fx.Effect]:
        request = RequestForQuotation(units or (UNIT,))
        return self.command(ev.RequestSubmitted(request_id, request, ev.AuctionOptions(rounds, **options)), now)

    def open(self, *resources: str, units: tuple[RequestUnit, ...] = (UNIT,), now: int = 0, **options: Any) -> Any:
        """Submit, and call these resources."""
        self.submit(*units, now=now, **options)
        return self.hear("directory", c.DirectoryListing("r1", "resource-trader", resources), now)

    def propose(self, resource: str, *offers: Offer, round_number: int = 1, now: int = 0) -> list[fx.Effect]:
        return self.hear(resource, c.Proposal("r1", round_number, offers), now, performative=Performative.PROPOSE)

    def auction(self, *, same_resource: bool = True) -> list[fx.Effect]:
        """Up to the acceptances; with two units, both go to res1, or one to each."""
        numbers = range(1, self.units + 1)
        self.open("res1", "res2", units=tuple(replace(UNIT, number=number) for number in numbers))
        effects: list[fx.Effect] = []
        for resource, price in (("res1", 50), ("res2", 60)):
            prices = [price if same_resource or number == 1 else 110 - price for number in numbers]
            effects = self.propose(
                resource, *(self.offer(resource, each, number) for number, each in zip(numbers, prices, strict=True))
            )
        return effects

    def grant(self, resource: str = "res1", unit: int = 1, now: int = 0, hold_for: int = UNTIL) -> list[fx.Effect]:
        offer_id = f"offer-{resource}-{unit}"
        return self.hear(resource, c.HoldGranted("r1", offer_id, f"R-{offer_id}", hold_for), now)

    @property
    def confirmation(self) -> Any:
        return self.party.purchases["r1"].confirmation

    def vote(self, now: int = 0, **changes: Any) -> list[fx.Effect]:
        """The bank's yes to the order at hand."""
        made = self.confirmation.agreements
        lines = tuple(c.OrderLine(each.agreement_id, each.resource, each.cost, each.offer.offer_id) for each in made)
        said = c.FundsReserved(made[0].order_id, "alice", lines, UNTIL, made[0].valid_until, now)
        return self.hear("bank", replace(said, **changes), now, performative=Performative.AGREE)

    def committed(self, **options: Any) -> list[fx.Effect]:
        """Up to the CONFIRMs."""
        asked = self.auction(**options)
        for acceptance in [each for each in contents(asked) if isinstance(each, c.Acceptance)]:
            _, resource, unit = acceptance.offer_id.split("-")
            self.grant(resource, int(unit))
        return self.vote()

    def proof(self, index: int = 0, **changes: Any) -> c.Settled:
        agreement = self.confirmation.agreements[index]
        paid = c.PaymentMade(agreement.agreement_id, f"payment:{agreement.agreement_id}", agreement.cost)
        seal = seal_of(paid, "bank", agreement.resource)
        both = Signed(agreement, ("alice", agreement.resource))
        settled = c.Settled(agreement.agreement_id, agreement.offer.offer_id, both, paid, seal)
        return replace(settled, **changes)

    def posted(self) -> c.OrderPosted:
        made = self.confirmation.agreements
        paid = tuple(c.PaymentMade(each.agreement_id, f"payment:{each.agreement_id}", each.cost) for each in made)
        return c.OrderPosted(self.confirmation.order_id, paid)

    def failed(self, index: int = 0, **changes: Any) -> Signed:
        agreement = self.confirmation.agreements[index]
        body = end_of(agreement, "it burns", 0, RefusalCode.SLOT_TAKEN)
        return Signed(replace(body, **changes), (agreement.resource,), "text")

    def bought(self) -> str:
        self.committed()
        self.hear("res1", self.proof())
        return str(self.confirmation.agreements[0].agreement_id)

    @property
    def outcome(self) -> Any:
        return self.party.purchases["r1"].outcome


@dataclass
class OneBank(One):
    """A bank over a ledger in memory; alice has 2000 credits."""

    party: Any = field(default_factory=lambda: BankParty("bank", timing=Timing()))
    ledger: Book = field(default_factory=Book)

    def __post_init__(self) -> None:
        self.books = BankLedger(self.ledger)
        for name, kind in (
            ("alice", AccountKind.USER),
            ("mallory", AccountKind.USER),
            ("res1", AccountKind.RESOURCE),
            ("res2", AccountKind.RESOURCE),
        ):
            self.ledger.open_account(name, kind, at=1)
        self.ledger.deposit("d", "alice", 200_000, at=2)

    def answered(self, effects: list[fx.Effect], now: int) -> list[fx.Effect]:
        """Let the ledger answer; what is left are messages and reports."""
        left: list[fx.Effect] = []
        for effect in effects:
            if isinstance(effect, fx.Send | fx.Report):
                left.append(effect)
            else:
                answer = self.books.answer(effect, now)  # type: ignore[arg-type]
                left += self.answered(self.party.handle(answer, now), now)
        return left

    def tick(self, now: int) -> list[fx.Effect]:
        return self.answered(self.party.tick(now), now)

    def line(self, number: int = 1, resource: str = "res1", cost: int = 96_000) -> c.OrderLine:
        return c.OrderLine(f"a{number}", resource, cost, f"offer-a{number}")

    def order(self, *lines: c.OrderLine, order_id: str = "o1", until: int = UNTIL, now: int = 10, **by: Any) -> Any:
        """What the bank says to alice's order."""
        content = c.PaymentOrder(order_id, lines or (self.line(),), until)
        (answer,) = contents(self.hear(by.pop("sender", "alice"), content, now, **by))
        return answer

    def agreement(self, line: c.OrderLine, **changes: Any) -> Agreement:
        offer = Offer(f"offer-{line.agreement_id}", "r1", 1, line.resource, 60, HOUR, 2 * HOUR, 16, 0.5, HOUR)
        body = agreement_of(offer, UNIT, agreement_id=line.agreement_id, issued_at=10, order_id="o1")
        return replace(body, **changes)

    def countersign(self, line: c.OrderLine, now: int = 20, sender: str = "", **changes: Any) -> list[fx.Effect]:
        """A resource brings the agreement with both signatures."""
        signers = changes.pop("signers", ("alice", line.resource))
        signed = Signed(self.agreement(line, **changes), signers, "text")
        return self.hear(sender or line.resource, signed, now, performative=Performative.REQUEST)

    def cancellation(
        self, line: c.OrderLine, signers: tuple[str, ...], sender: str, now: int, **changes: Any
    ) -> list[Any]:
        body = ContractChange(line.agreement_id, 0, "o", "alice", line.resource, "bank", now, reason="not needed")
        signed = Signed(replace(body, **changes), signers, "text")
        return self.hear(sender, signed, now, performative=Performative.REQUEST)

    def failure(self, signer: str = "res1", **changes: Any) -> Signed:
        """What a resource signs that has failed."""
        body = end_of(self.agreement(self.line()), "it burns", 10, RefusalCode.SLOT_TAKEN)
        return Signed(replace(body, **changes), (signer,), "text")

    def posted(self, name: str) -> int:
        return self.ledger.balance(name).posted

    def reserved(self, name: str = "alice") -> int:
        return self.ledger.balance(name).reserved


@dataclass
class OneDirectory(One):
    party: Any = field(default_factory=lambda: DirectoryParty("directory", timing=Timing()))

    def register(self, name: str = "res", number: int = 1, now: int = 0, lease: int = 15 * SECOND) -> Any:
        registration = c.Registration("resource-trader", lease, number)
        answers = contents(self.hear(name, registration, now, role=Role.RESOURCE))
        return answers[0] if answers else c.Registered("resource-trader", number)  # silence: a heartbeat that counts

    def deregister(self, name: str = "res", number: int = 1, now: int = 0) -> None:
        assert self.hear(name, c.Deregistration("resource-trader", number), now, role=Role.RESOURCE) == []

    def names(self, now: int = 0, after: str = "") -> Any:
        (listing,) = contents(self.hear("alice", c.DirectoryQuery("q", "resource-trader", after), now))
        return listing


@dataclass
class OneKeeper(One):
    party: Any = field(default_factory=lambda: KeeperParty("keeper", bank="bank", timing=Timing()))


@pytest.fixture
def resource() -> OneResource:
    return OneResource()


def resource_with(**quotas: Any) -> OneResource:
    return OneResource(new_resource(Quotas(**quotas)))


def launching_resource(terms: LaunchTerms) -> OneResource:
    return OneResource(new_resource(Quotas(), terms))


def restarted_resource(journal: list[Record], now: int) -> tuple[OneResource, list[fx.Effect]]:
    again = OneResource()
    return again, again.answered(again.party.recover(journal, now), now)


@pytest.fixture
def alice() -> OneUser:
    return OneUser()


@pytest.fixture
def alice_with_two_units() -> OneUser:
    return OneUser(units=2)


def restarted_user(journal: list[Record], now: int) -> tuple[OneUser, list[fx.Effect]]:
    again = OneUser(journal=list(journal))
    return again, again.answered(again.party.recover(tuple(journal), now), now)


@pytest.fixture
def bank() -> OneBank:
    return OneBank()


@pytest.fixture
def directory() -> OneDirectory:
    return OneDirectory()


def directory_with(known: Any) -> OneDirectory:
    return OneDirectory(DirectoryParty("directory", timing=Timing(), known=known))


@pytest.fixture
def keeper() -> OneKeeper:
    return OneKeeper()


PARTIES: dict[str, Any] = {
    "res": OneResource,
    "alice": OneUser,
    "bank": OneBank,
    "directory": OneDirectory,
    "keeper": OneKeeper,
}


@pytest.fixture
def refused() -> Any:
    return pytest.raises(RemoteProtocolError)
