"""A whole market in virtual time: the same parties and hosts as the agents run, over a simulated network.

Every party's durable things (journal, machine, ledger, identifier counters) live here, outside its host; a crash throws
the host away and a restart builds a new one from them. After any effect a party may crash, and any write may fail.
Virtual time is the true time; a party receives the time of its own clock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from ramp.composition import Composition, open_accounts
from ramp.errors import DocumentError, EffectFailed, InvariantViolated
from ramp.model.acl import Message
from ramp.model.instant import Duration, Instant
from ramp.model.seal import Role
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.party import Party
from ramp.protocol.progress import ApprovalAsked, Progress
from ramp.protocol.records import Record
from ramp.runtime.guests.health import GuestHealth
from ramp.runtime.guests.questions import GuardedGuest
from ramp.runtime.host import Host, Ports
from simulation.kernel import EventQueue
from simulation.market.actors import BANK, COMPOSITION, DIRECTORY, KEEPER, Actor, CountedIds, Crashed
from simulation.market.book import Book
from simulation.market.faults.breakdowns import Blow, Breakdowns, WatchedJournal, WatchedLedger
from simulation.market.faults.happenings import ClockSet, Delivery, Given, GuestStep, Happening, Outage, Restart, Tick
from simulation.market.faults.late_guests import Fate, LateGuests, Surroundings
from simulation.market.faults.plan import NO_FAULTS, FaultPlan
from simulation.market.market_view import Checker, MarketView
from simulation.market.network import Network
from simulation.market.observing import NewInterceptor, Observer, Said, Script
from simulation.market.party_clock import RIGHT, PartyClock
from simulation.market.random_streams import stream
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.virtual_notary import EXAMINED, is_admitted

if TYPE_CHECKING:
    from simulation.market.wire import Wire  # which loads cryptography

START: Instant = 1_800_000_000_000_000
"""Virtual time begins here, in January 2027; any fixed instant would do."""

WAKE_MAX = 1000
"""Who wakes so often at one instant never goes to sleep again."""

Watcher = TypeVar("Watcher", Checker, Observer)
Listener = Callable[[str, Progress, Instant], None]
Fates = Callable[[str, fx.AskMachine | fx.PriceSlots], Fate | None]


class World(MarketView):
    """A market that can be run, watched and broken.

    Args:
        resources: the sellers.
        users: the buyers.
        seed: of everything random.
        faults: the fault plan.
        composition: the parties, and the limits that all keep; by default the usual ones.
        checkers: watch every step.
        listen: receives every party's progress (party, progress, virtual time).
        observer: receives every effect, message, crash and restart.
        script: decides about messages and crashes before the fault plan does.
        fates: likewise decides the fate of a resource's question to its machine or price strategy.
        wire: carries messages as text with real signatures instead of typed values.
        liars: interceptors of resources and users that need not keep to the protocol.
    """

    def __init__(
        self,
        resources: Sequence[ResourceSpec],
        users: Sequence[UserSpec],
        *,
        seed: int,
        faults: FaultPlan = NO_FAULTS,
        composition: Composition = COMPOSITION,
        checkers: Sequence[Checker] = (),
        listen: Listener | None = None,
        observer: Observer | None = None,
        script: Script | None = None,
        fates: Fates | None = None,
        wire: Wire | None = None,
        liars: Mapping[str, NewInterceptor] | None = None,
    ) -> None:
        self.composition = composition
        self.faults = faults
        self.healed_at = START + faults.heal_after
        self.crashes = self.refused = self.sent = 0
        self.approve: Callable[[ApprovalAsked], bool | None] = lambda _: True
        accounts = [*(each.account for each in resources), *(each.account for each in users)]
        self.deposits = {each.name: each.deposit for each in accounts}
        self._wire = wire
        self._queue: EventQueue[Happening] = EventQueue(START)
        self._checkers = tuple(checkers)
        self._looking = _taking(Checker.on_step, checkers)
        self._listening = _taking(Checker.on_delivered, checkers)
        self._answered = _taking(Checker.on_answered, checkers)
        self._sent = _taking(Checker.on_sent, checkers)
        self._written = _taking(Checker.on_written, checkers)
        self._listen = listen
        self._observer = observer or Observer()
        self._noting_messages = _taking(Observer.sent, (self._observer,))
        self._script = script
        self._has_effects_followed = bool(
            script is not None or faults.aims or faults.crash or _taking(Observer.carried_out, (self._observer,))
        )
        away = {Blow.CUT_BANK: BANK, Blow.CUT_DIRECTORY: DIRECTORY}
        self._breakdowns = Breakdowns(faults, seed, START, away)
        self._network = Network(
            faults.network, self.healed_at, stream(seed, "network"), [each.after(START) for each in faults.isolations]
        )
        self._ledger = Book()
        open_accounts(accounts, self._ledger, START)
        self._machines = {spec.name: spec.machine for spec in resources}
        self._actors: dict[str, Actor] = {}
        self._up: dict[tuple[type, bool], Mapping[str, Party]] = {}
        around = Surroundings(
            after=lambda delay, act: self._queue.schedule(self.now + delay, GuestStep(act)),
            time=self.time_of,
            is_healed=lambda: self.now >= self.healed_at,
            host=lambda name: self._actors[name].host,
            answer=self._answer,
            scripted=fates,
        )
        self._guests = LateGuests(seed, around)
        roles = composition.roles((each.name for each in resources), (each.name for each in users))
        self._liars = {
            name: intercept(name, self._notary(name, roles[name]), [other for other in roles if other != name])
            for name, intercept in (liars or {}).items()
        }
        self._woken, self._woken_at = 0, ("", START)
        self._add_market()
        for resource in resources:
            self._add_resource(resource)
        for user in users:
            self._add_user(user)
        for actor in list(self._actors.values()):
            self._start(actor)
        for name, fault in self.faults.clocks.items():
            for when, _ in fault.steps:
                self._queue.schedule(START + when, ClockSet(name))
        for down in self.faults.outages:
            self._queue.schedule(START + down.since, Outage(down.name, down.until - down.since))

    # -- parties -------------------------------------------------------------------------------------------------

    def _add_market(self) -> None:
        market = self.composition
        for name in market.directories:
            self._add(name, Role.DIRECTORY, partial(market.directory_party, name), {})
        book = WatchedLedger(self._ledger, BANK, lambda effect: self._check_write(BANK, effect))
        self._add(BANK, Role.BANK, market.bank_party, {"ledger": book})
        self._add(KEEPER, Role.KEEPER, market.keeper_party, {})

    def _add_resource(self, resource: ResourceSpec) -> None:
        name, faults, guests = resource.name, self.faults, self._guests
        watch = partial(self._watch, name)
        machine = GuardedGuest(resource.machine, GuestHealth("plug-in", watch))
        pricing = GuardedGuest(resource.strategy, GuestHealth("price strategy", watch))
        fixed: dict[str, object] = {
            "journal": self._journal(name),
            "machine": guests.behind(name, machine, "machine", faults.machines.get(name)),
            "pricing": guests.behind(name, pricing, "pricing", faults.strategies.get(name)),
            "launcher": resource.launcher,
        }
        party = partial(
            self.composition.resource_party,
            name,
            resource.machine.source,
            CountedIds(name),
            terms=resource.terms,
            prices=resource.prices,
            launching=resource.launching,
        )
        self._add(name, Role.RESOURCE, party, fixed)

    def _add_user(self, user: UserSpec) -> None:
        party = partial(self.composition.user_party, user.name, CountedIds(user.name), user.rule)
        self._add(user.name, Role.USER, party, {"journal": self._journal(user.name)})

    def _add(self, name: str, role: Role, build: Callable[[], Party], fixed: Mapping[str, object]) -> None:
        def ports() -> Ports:
            return Ports(
                send=self._sender(name),
                notary=self._notary(name, role),
                before=partial(self._before, name) if self._has_effects_followed else None,
                watch=partial(self._watch, name),
                sealed=self.composition.sealed,
                unsent=None if self._wire is None else self._unsent,
                **fixed,  # type: ignore[arg-type]
            )

        clock = PartyClock(self.faults.clocks.get(name, RIGHT), START)
        journal = cast("WatchedJournal | None", fixed.get("journal"))
        self._actors[name] = Actor(name, build, ports, clock, journal)

    # -- running -------------------------------------------------------------------------------------------------

    def command(self, name: str, command: ev.Command, at: Instant | None = None) -> None:
        """Let a party's owner give a command at an instant (default now)."""
        self._queue.schedule(self.now if at is None else at, Given(name, command))

    def run(self, until: Callable[[], object] | None = None, limit: Duration = 0) -> None:
        """Run until a condition holds (looked at after every event) or virtual time has advanced by `limit`.

        With a condition, virtual time stands at the last event afterwards; without one, at the limit.
        """
        end = self.now + limit
        events = self._queue.until(end)
        while (until is None or not until()) and (event := next(events, None)) is not None:
            if isinstance(event, Delivery):
                self._deliver(event)
            else:
                self._happen(event)
            for checker in self._looking:
                checker.on_step(self)
        if until is None:
            self._queue.now = end

    def finish(self, *, at_rest: bool = True) -> None:
        """Let every checker look at the end; `at_rest`: whether the market must be at rest."""
        for checker in self._checkers:
            (checker.at_end if at_rest else checker.at_stop)(self)

    def _happen(self, event: Happening) -> None:
        match event:
            case Tick(name):
                actor = self._actors[name]
                self._woken = self._woken + 1 if self._woken_at == (name, self.now) else 0
                self._woken_at = (name, self.now)
                if self._woken > WAKE_MAX:
                    raise InvariantViolated("conversations_end", f"{name} wakes endlessly at one instant")
                actor.ticket = actor.armed_for = None
                self._guarded(actor, Host.tick)
            case Restart(name):
                self.restart(name)
            case Outage(name, lasting):
                self.crash(name, lasting)
            case ClockSet(name):
                self._follow_clock(self._actors[name])
            case GuestStep(act):
                act()
            case Given(name, command):
                self._obey(self._actors[name], command)

    def _deliver(self, delivery: Delivery) -> None:
        actor = self._actors.get(delivery.message.receiver)
        if actor is None or actor.host is None:
            return
        read: Message | None = delivery.message
        if self._wire is not None or type(delivery.message.content) in EXAMINED:
            read = self._read(delivery, actor.time(self._queue.now))
        if read is None:
            self.refused += 1
            return
        for checker in self._listening:
            checker.on_delivered(read, self)
        self._guarded(actor, Host.deliver, read)
        if actor.name in self._liars:
            self._say(self._liars[actor.name].hears(read, self.time_of(actor.name)))

    def _read(self, delivery: Delivery, now: Instant) -> Message | None:
        """Return the message as its receiver reads it by its clock, or None where the shell drops or answers it."""
        message, encoded = delivery.message, delivery.encoded
        if self._wire is None or encoded is None:
            return message if is_admitted(message, now) else None
        read, answer = self._wire.read(message, encoded, now)
        if answer is not None:
            self._sender(message.receiver)(answer)
        return read

    def _obey(self, actor: Actor, command: ev.Command) -> None:
        """Give a command to a party; after restart once more if it was down, or crashed before it noted the command."""
        if actor.host is None:
            actor.unheeded.append(command)
            return
        if isinstance(command, ev.RequestSubmitted):
            actor.unheeded.append(command)
        if self._guarded(actor, Host.take, command) and command in actor.unheeded:
            actor.unheeded.remove(command)

    def _guarded(self, actor: Actor, action: Callable[..., None], *given: object) -> bool:
        """Let a party that is up act on what is given, at its time; says whether it is still up."""
        host = actor.host
        if host is None:
            return False
        try:
            action(host, *given, self._queue.now if actor.clock.is_right else actor.time(self._queue.now))
        except Crashed as crashed:
            self._crash(actor, crashed.down_for)
            return False
        except EffectFailed:  # a write has failed: the agent ends and comes up again from its journal
            self._crash(actor, self._breakdowns.pause())
            return False
        if actor.doom is not None:
            self._crash(actor, actor.doom)
            return False
        if (deadline := host.party.deadline) != actor.armed_for:
            actor.arm(deadline, self._queue)
        return True

    def crash(self, name: str, down_for: Duration | None = None) -> None:
        """Let a party crash now; it restarts after `down_for`, or never by itself (None)."""
        if self._actors[name].host is not None:
            self._crash(self._actors[name], down_for)

    def restart(self, name: str) -> None:
        """Start a party again that is down."""
        actor = self._actors[name]
        if actor.host is None:
            self._observer.restarted(name, self.now)
            self._start(actor)

    def deliver(self, message: Message, delay: Duration) -> None:
        """Deliver a message that no party of the market has sent."""
        self._queue.schedule(self.now + delay, Delivery(message))

    def perform(self, name: str, effects: Sequence[fx.Effect]) -> None:
        """Let a party that is up carry out effects that its owner asked it for directly."""
        self._guarded(self._actors[name], Host.perform, effects)

    def _crash(self, actor: Actor, down_for: Duration | None) -> None:
        self.crashes += 1
        self._up.clear()
        actor.host = actor.doom = None
        self._observer.crashed(actor.name, self.now)
        actor.disarm(self._queue)
        if down_for is not None:
            self._queue.schedule(self.now + down_for, Restart(actor.name))

    def _start(self, actor: Actor) -> None:
        actor.clock.follow(self.now)
        actor.host = Host(actor.build(), actor.ports())
        self._up.clear()
        if self._guarded(actor, Host.start):
            for command in actor.unheeded:
                self._queue.schedule(self.now, Given(actor.name, command))
            actor.unheeded.clear()

    def _follow_clock(self, actor: Actor) -> None:
        if actor.host is None:
            return  # it reads the clock when it starts
        by = actor.clock.follow(self.now)
        actor.disarm(self._queue)  # a deadline that has not moved comes at another moment now

        def look(host: Host, now: Instant) -> None:
            host.clock_set(by)
            host.tick(now)  # what has run out has run out now, as an agent that looks at the clock finds

        self._guarded(actor, look)

    # -- ports ---------------------------------------------------------------------------------------------------

    def _before(self, name: str, effect: fx.Effect) -> None:
        actor = self._actors[name]
        if actor.doom is not None:
            raise Crashed(actor.doom)  # after the effect before
        if self._script is not None and (crash := self._script.crash(name, effect)) is not None:
            raise crash
        actor.doom, cut = self._breakdowns.at(name, effect, self.now)
        if cut is not None:
            self._network.cut(cut)
        self._observer.carried_out(name, effect, self.now)

    def _journal(self, name: str) -> WatchedJournal:
        def written(record: Record) -> None:
            for checker in self._written:
                checker.on_written(name, record, self)

        return WatchedJournal(name, partial(self._check_write, name), written)

    def _check_write(self, name: str, effect: fx.Effect) -> bool:
        return self._breakdowns.check_write(name, effect, self.now)

    def _sender(self, name: str) -> Callable[[Message], None]:
        return self._say_otherwise if name in self._liars else self._transmit

    def _say_otherwise(self, message: Message) -> None:
        self._say(self._liars[message.sender].says(message, self.time_of(message.sender)))

    def _unsent(self, message: Message, error: DocumentError) -> None:
        self.refused += 1

    def _say(self, said: Sequence[Said]) -> None:
        for message, kept_back in said:
            with contextlib.suppress(DocumentError):  # what cannot be written down cannot be sent
                self._transmit(message, kept_back)

    def _transmit(self, message: Message, kept_back: Duration = 0) -> None:
        now = self._queue.now
        encoded = self._wire.encode(message) if self._wire is not None else None
        for checker in self._sent:
            checker.on_sent(message, self)
        delays = self._script.route(message) if self._script is not None else None
        if delays is None:
            self.sent += 1
            delays = self._network.steady or self._network.route(message, now)
        for observer in self._noting_messages:
            observer.sent(message, delays, now)
        for delay in delays:
            self._queue.schedule(now + kept_back + delay, Delivery(message, encoded))

    def _answer(self, name: str, answer: ev.Answer) -> None:
        self._observer.answered(name, answer, self.now)
        for checker in self._answered:
            checker.on_answered(name, answer, self)
        self._guarded(self._actors[name], Host.take, answer)

    def _watch(self, name: str, progress: Progress) -> None:
        if self._listen is not None:
            self._listen(name, progress, self.now)
        if isinstance(progress, ApprovalAsked) and (answer := self.approve(progress)) is not None:
            self.command(name, ev.OffersApproved(progress.request_id, answer))


def _taking(call: Callable[..., None], watchers: Sequence[Watcher]) -> tuple[Watcher, ...]:
    """Return the watchers that override a call of their base."""
    return tuple(each for each in watchers if getattr(type(each), call.__name__) is not call)
