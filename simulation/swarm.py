"""Many small markets under faults, one a seed, with every invariant checked.

A seed draws the machines, the users' money and requests, and the fault plan. Faults end after some minutes of virtual
time; then the market must come to rest, and the checkers look at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from ramp.composition import Composition
from ramp.errors import InvariantViolated
from ramp.model.contents import TransferKind
from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, Instant
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol.progress import Progress, RequestEnded
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.resource.slots.kept_participants import FINAL
from ramp.protocol.timing import Timing
from ramp.protocol.transition_tables import ParticipantState
from ramp.runtime.configuration.values import SwarmConfig
from simulation.checkers.all_or_none import AllOrNone
from simulation.checkers.amended_once import AmendedOnce
from simulation.checkers.bank_keeps_its_word import BankKeepsItsWord
from simulation.checkers.booked_before_said import BookedBeforeSaid
from simulation.checkers.both_signatures import BothSignatures
from simulation.checkers.conversations_end import ConversationsEnd
from simulation.checkers.decides_in_time import DecidesInTime
from simulation.checkers.decision_is_final import DecisionIsFinal
from simulation.checkers.given_back import GivenBack
from simulation.checkers.handed_over_is_paid import HandedOverIsPaid
from simulation.checkers.hold_deadline import HoldDeadline
from simulation.checkers.judged_once import JudgedOnce
from simulation.checkers.money_conserved import MoneyConserved
from simulation.checkers.orders_settle import OrdersSettle
from simulation.checkers.paid_and_reserved import PaidAndReserved
from simulation.checkers.paid_for_its_start import PaidForItsStart
from simulation.checkers.price_owed import PriceOwed
from simulation.checkers.refunded_once import RefundedOnce
from simulation.checkers.size_owed import SizeOwed
from simulation.checkers.slot_or_money import SlotOrMoney
from simulation.checkers.vote_binds import VoteBinds
from simulation.checkers.written_before_said import WrittenBeforeSaid
from simulation.market.actors import COMPOSITION
from simulation.market.drawing import (
    WholeParts,
    change_some,
    draw_changes,
    draw_growths,
    draw_sizes,
    draw_starts,
    grow_some,
    joining_a_queue,
    of_any_size,
    run_on,
    with_time_for_changes,
    without_reserving,
)
from simulation.market.faults.late_guests import ForgetfulMachine
from simulation.market.faults.plan import FaultPlan, draw_fault_plan
from simulation.market.market_view import Checker
from simulation.market.observing import Happened, NewInterceptor, Observer
from simulation.market.random_streams import stream
from simulation.market.seed_reports import SeedReport
from simulation.market.specs import ResourceSpec, UserSpec, composition_of, configured
from simulation.market.wire import Wire
from simulation.market.world import START, Listener, World

REST_LIMIT = 45 * MINUTE
"""A healed market is at rest well within this, beside the times for which slots are held and money is set aside."""

SLOTS_LIMIT = 8 * HOUR
"""All slots of a seed have begun by then."""

SOON = 20 * MINUTE
"""Slots that begin so soon after the market has come to rest are waited for."""

RULES_DRAWN = ("", "sealed-first-price", "second-price", "second-price")
"""Auction rules of the requests in markets that draw them."""

SWARM_TIMING = Timing(hold_time=40 * SECOND, heartbeat=20 * SECOND, lease=60 * SECOND)
"""Shorter holds than in production, so that more of them run out; rarer heartbeats, so that runs are short."""


def new_checkers() -> list[Checker]:
    """Return one of each; the checkers of safety first."""
    return [
        VoteBinds(),
        DecisionIsFinal(),
        DecidesInTime(),
        JudgedOnce(),
        BothSignatures(),
        BankKeepsItsWord(),
        HoldDeadline(),
        BookedBeforeSaid(),
        GivenBack(),
        AllOrNone(),
        WrittenBeforeSaid(),
        ConversationsEnd(),
        OrdersSettle(),
        PaidAndReserved(),
        PaidForItsStart(),
        PriceOwed(),
        SizeOwed(),
        SlotOrMoney(),
        HandedOverIsPaid(),
        RefundedOnce(),
        AmendedOnce(),
        MoneyConserved(),
    ]


@dataclass(frozen=True, slots=True)
class SeedMarket:
    """The participants of a seed's market, before it opens.

    Attributes:
        seed: the seed.
        resources: the sellers.
        users: the buyers.
        checkers: the invariants.
        composition: the parties, and the limits that all keep.
        liars: interceptors of resources and users that need not keep to the protocol.
    """

    seed: int
    resources: Sequence[ResourceSpec]
    users: Sequence[UserSpec]
    checkers: Sequence[Checker]
    composition: Composition = COMPOSITION
    liars: Mapping[str, NewInterceptor] = field(default_factory=dict)


Alteration = Callable[[SeedMarket], SeedMarket]
"""Changes the participants of a seed's market."""


def unaltered(drawn: SeedMarket) -> SeedMarket:
    """Leave the market as the seed draws it."""
    return drawn


def as_configured(config: SwarmConfig, drawn: SeedMarket) -> SeedMarket:
    """Put the resources, users and limits of a configuration in the place of those that a seed draws.

    Raises:
        ConfigurationError: a plug-in or a price strategy cannot be opened.
    """
    return replace(
        drawn,
        resources=configured(config.resources, START, drawn.seed),
        users=[UserSpec(each.name, each.deposit, config.auction_rule, each.overdraft) for each in config.users],
        composition=composition_of(config),
    )


def replay_seed(seed: int, alter: Alteration = unaltered) -> tuple[SeedReport, list[str]]:
    """Run the market of one seed again and write down what happens; `alter` as of `run_seed`.

    Returns:
        The report, and a line for each message, record, call, crash and restart up to the violation or the end.
    """
    happened = Happened(START)
    report = run_seed(seed, observer=happened, alter=alter)
    return report, happened.lines


def run_seed(
    seed: int,
    *,
    faults: FaultPlan | None = None,
    observer: Observer | None = None,
    wired: bool = False,
    ruled: bool = True,
    resized: bool | None = None,
    alter: Alteration = unaltered,
) -> SeedReport:
    """Run the market of one seed, which draws everything.

    Args:
        seed: the seed.
        faults: the fault plan; drawn from the seed where None.
        observer: receives every event.
        wired: send messages as XML with real signatures.
        ruled: whether the seed may draw auction rules and probable starts; else it has the paper's, and reserved slots.
        resized: whether owners change the size of what they have bought; drawn from the seed where None.
        alter: changes the participants and checkers before the market opens.
    """
    report = SeedReport(seed)

    def listen(_: str, progress: Progress, now: Instant) -> None:
        if isinstance(progress, RequestEnded):
            status = progress.outcome.status.value
            report.outcomes[status] = report.outcomes.get(status, 0) + 1

    changes = draw_changes(seed, resized=resized)
    world = _new_world(alter(_draw_market(seed, ruled=ruled)), listen, faults, observer, changes, wired)
    try:
        _run_world(world, seed, ruled=ruled, changes=changes)
    except InvariantViolated as violation:
        report.violation, report.checker = violation.reason, violation.checker
    except Exception as error:  # a harness: whatever a party or checker raises is a finding of this seed
        report.violation, report.checker = f"{type(error).__name__}: {error}", "no_error"
    report.messages = world.sent
    report.lost = world.network.lost
    report.crashes = world.crashes
    report.late_answers = world.guest_counts.late
    report.in_doubt = world.guest_counts.in_doubt
    report.unheard = world.guest_counts.unheard
    return report


def _draw_market(seed: int, *, ruled: bool) -> SeedMarket:
    random = stream(seed, "market")
    parts = stream(seed, "parts") if ruled and draw_rules(seed) is not None else None
    resources = [_draw_resource(f"res{number}", random, parts) for number in range(random.randint(2, 4))]
    users = [
        UserSpec(f"user{number}", random.choice((20_000, 5_000_000, 5_000_000, 50_000_000, 50_000_000)))
        for number in range(random.randint(1, 3))
    ]
    if ruled and (starts := draw_starts(seed)) is not None:
        resources = [without_reserving(each, starts, seed) if starts.random() < 0.6 else each for each in resources]
    timing = _draw_timing(stream(seed, "timing"))
    return SeedMarket(seed, resources, users, new_checkers(), replace(COMPOSITION, timing=timing))


def _new_world(
    market: SeedMarket,
    listen: Listener,
    faults: FaultPlan | None,
    observer: Observer | None,
    changes: Random | None,
    wired: bool,
) -> World:
    seed = market.seed
    roles = COMPOSITION.roles((each.name for each in market.resources), (each.name for each in market.users))
    traders = [*(each.name for each in market.resources), *(each.name for each in market.users)]
    return World(
        market.resources,
        market.users,
        seed=seed,
        faults=faults or with_time_for_changes(draw_fault_plan(seed, traders), changes),
        composition=market.composition,
        checkers=market.checkers,
        listen=listen,
        observer=observer,
        wire=Wire(roles, START - DAY) if wired else None,
        liars=market.liars,
    )


def _draw_timing(random: Random) -> Timing:
    """Draw limits as in production or much shorter, so that holds and money run out while votes are on their way."""
    return replace(
        SWARM_TIMING,
        hold_time=random.choice((9, 12, 25, 40)) * SECOND,
        agreement_validity=random.choice((15, 30, 45, 120)) * SECOND,
    )


def _draw_resource(name: str, random: Random, parts: Random | None) -> ResourceSpec:
    cores = random.choice((16, 16, 64, 64, 256))
    minimum = random.randint(20, 60)
    kind = WholeParts if parts is not None and parts.random() < 0.5 else ForgetfulMachine
    machine = kind(name, cores, random.choice((0.0, 0.0, 0.3, 0.5)))
    prices = PriceRange(minimum + random.randint(0, 40), minimum)
    terms = StaticTerms(cores, operating_system=random.choice((None, "Linux")))
    return ResourceSpec(name, machine, terms, prices)


def _run_world(world: World, seed: int, *, ruled: bool, changes: Random | None) -> None:
    rest = REST_LIMIT + 2 * (world.timing.hold_time + world.timing.agreement_validity)
    random = stream(seed, "requests")
    growths = draw_growths(seed, changes)
    rules = draw_rules(seed) if ruled else None
    sizes = draw_sizes(seed) if rules is not None else None
    starts = stream(seed, "queued requests") if ruled and draw_starts(seed) is not None else None
    submitted = 0
    for user in sorted(world.users):
        for number in range(random.randint(1, 3)):
            rule = rules.choice(RULES_DRAWN) if rules is not None else ""
            _submit(world, user, f"request-{user}-{number}", random, rule, sizes, starts)
            submitted += 1
    answers = stream(seed, "approval")
    world.approve = lambda _: answers.random() < 0.8
    # faults end, then every conversation has to end by itself
    healing = world.healed_at - world.now
    quotes = stream(seed, "quotes")
    world.run(limit=min(healing // 4, MINUTE))
    _buy_some(world, quotes)
    world.run(limit=healing // 2 - min(healing // 4, MINUTE))
    _buy_some(world, quotes)
    change_some(world, changes)
    grow_some(world, growths)
    _cancel_some(world, random)
    _ask_some(world, random)
    run_on(world, changes, world.healed_at - world.now)
    change_some(world, changes)
    grow_some(world, growths)
    _cancel_some(world, random)
    _buy_some(world, quotes)
    world.run(until=lambda: _at_rest(world, submitted), limit=rest)
    if not world.faults.clocks_agree(world.timing.message_age):
        world.finish(at_rest=False)  # what is asked is refused for its age: promised is safety only
        return
    soon = world.now + SOON
    if any(world.now < start < soon for start in _sold_starts(world)):  # let them begin
        world.run(limit=SOON)
        world.run(until=lambda: _at_rest(world, submitted), limit=rest)
    if _unheard_refunds(world):  # a resource that has missed the bank's word asks when its slot begins
        world.run(until=lambda: not _unheard_refunds(world), limit=SLOTS_LIMIT)
        world.run(until=lambda: _at_rest(world, submitted), limit=rest)
    if world.ledger.open_orders():  # a liar may let its own money wait as if for a job
        world.run(until=lambda: not world.ledger.open_orders(), limit=SLOTS_LIMIT)
        world.run(until=lambda: _at_rest(world, submitted), limit=rest)
    world.finish()


def _sold_starts(world: World) -> list[Instant]:
    return [
        participant.offer.start
        for party in world.honest_resources.values()
        for participant in party.participants.values()
        if participant.state is ParticipantState.SOLD
    ]


def _unheard_refunds(world: World) -> bool:
    return any(
        participant.state is ParticipantState.SOLD
        and world.ledger.transfer(participant.agreed.agreement_id, TransferKind.REFUND) is not None
        for party in world.honest_resources.values()
        for participant in party.participants.values()
    )


def draw_rules(seed: int) -> Random | None:
    """Draw, in three of ten markets, an auction rule for every request from this stream."""
    random = stream(seed, "rules")
    return random if random.random() < 0.3 else None


def _submit(
    world: World,
    user: str,
    request_id: str,
    random: Random,
    rule: str,
    sizes: Random | None,
    starts: Random | None,
) -> None:
    at = world.now + int(random.random() * 90 * SECOND)
    units = []
    soon = random.randint(4, 20) * MINUTE if random.random() < 0.15 else 0
    for number in range(1, random.choice((1, 1, 2, 3)) + 1):
        wall = random.randint(1, 4) * HOUR
        start = at + (soon or random.randint(1, 4) * HOUR)
        price = random.randint(25, 130)
        units.append(
            RequestUnit(
                number,
                price,
                start + wall + random.choice((0, 0, HOUR)),
                TotalCores(random.choice((1, 4, 8, 8, 16, 32, 128))),
                not_before=start,
                wall_time=wall,
            )
        )
    if starts is not None and starts.random() < 0.7:
        units, rule = [joining_a_queue(units[0], at, starts)], ""
        if starts.random() < 0.15:  # while the job waits
            world.command(user, ev.RequestWithdrawn(request_id), at + int(starts.random() * 10 * MINUTE))
    if sizes is not None:
        units = [of_any_size(unit, sizes) for unit in units]
    options = ev.AuctionOptions(
        rounds=random.randint(1, 4),
        round_time=random.choice((2, 5)) * SECOND,
        preference=random.choice(list(ev.Preference)),
        approval=random.choice((ev.Approval.AUTO, ev.Approval.AUTO, ev.Approval.ASK, ev.Approval.BEST_OFFER)),
        quote_only=random.random() < 0.1,
        rule=rule,
    )
    world.command(user, ev.RequestSubmitted(request_id, RequestForQuotation(tuple(units)), options), at)
    if random.random() < 0.1:
        world.command(user, ev.RequestWithdrawn(request_id), at + int(random.random() * 20 * SECOND))


def _cancel_some(world: World, random: Random) -> None:
    for name, user in world.users.items():
        for agreement_id in sorted(user.agreements):
            if random.random() < 0.2:
                world.command(name, ev.AgreementCancelled(agreement_id, "no longer needed"))


def _buy_some(world: World, random: Random) -> None:
    """Let owners buy what was quoted to them, from the best or another seller; some try it twice."""
    for name, user in world.honest_users.items():
        for request_id, purchase in user.purchases.items():
            outcome = purchase.outcome
            if outcome is None or not purchase.stands(()) or random.random() < 0.2:
                continue
            sellers = tuple(
                (unit.unit, random.choice(outcome.ranked(unit.unit)).offer.resource) for unit in outcome.units
            )
            for _ in range(random.choice((1, 1, 2))):
                world.command(name, ev.OffersApproved(request_id, True, sellers))


def _ask_some(world: World, random: Random) -> None:
    """Let owners ask for balances and sellers; the answers show that questions do not disturb the rest."""
    for name in world.users:
        if random.random() < 0.3:
            world.command(name, ev.AccountAsked(f"nonce-{name}", None, None))
        if random.random() < 0.3:
            world.command(name, ev.ResourcesAsked(f"sellers-{name}"))


def _at_rest(world: World, submitted: int) -> bool:
    users = world.honest_users
    if not world.everyone_is_up:
        return False
    if sum(len(user.purchases) for user in users.values()) < submitted:
        return False
    if any(purchase.outcome is None for user in users.values() for purchase in user.purchases.values()):
        return False
    if any(user.changes.open for user in users.values()):
        return False
    resources = world.honest_resources
    if any(party.sizes.open for party in resources.values()):
        return False
    if any(party.releases or world.is_asking(name) for name, party in resources.items()):
        return False
    if any(each.state not in FINAL for party in resources.values() for each in party.participants.values()):
        return False
    # a hold that reached a machine after its release, unreported, ends when it runs out
    return all(entry.firm for name in resources for entry in world.machines[name].reservations(world.time_of(name)))
