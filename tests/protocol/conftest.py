"""Runs protocol scripts: commands, then `----`, then what happened because of them, as far as the next empty line.

After etcd raft's interaction tests. A script opens a market, says what goes wrong with which message or effect, gives
the owners' commands and lets time pass; the expected transcript stands below each command and is compared word by word.
`pytest tests/protocol --rewrite` writes the transcripts anew; read them against the paper before they are kept.

The commands of a script:

    timing hold_time=120 ...             limits of the protocol in seconds; before `market`
    resource NAME cores=64 start=60 minimum=20 load=0.5 os=LINUX [forgetful]
                                         `forgetful`: its machine takes holds of keys that were released before
    user NAME credits=10000
    market [registrations]               open the market; with the directory's heartbeats in the transcript
    submit USER REQUEST rounds=1 round=15 approval=auto quote / cores=16 price=70 start=3600 wall=3600
                                         and with sites=SITE,... a unit for these sites only
    approve USER REQUEST yes|no [UNIT:SELLER...]       with sellers: a quote, while it stands
    withdraw USER REQUEST                cancel USER AGREEMENT
    resize USER AGREEMENT... [cores=N] [until=S] [price=P] [most=CREDITS] [quote]   several together
    balance USER QUERY                   sellers USER QUERY           leave RESOURCE
    deposit ACCOUNT DEPOSIT credits=100  the keeper orders a deposit        overview QUERY
    occupy RESOURCE cores=16 start=3600 wall=3600      jobs of the machine's own users come in
    drop|double|delay|corrupt PATTERN [count=1] [by=SECONDS]   the next messages like `alice>res1 cfp`, `*>bank request`
    replay PATTERN [as=SENDER]           the last message like that comes again
    launch USER JOB AGREEMENT cores=16 start=3600      order a job on something bought (`launches=USER,...`)
    job|endjob USER JOB QUERY                ask for a job, or end it        output USER JOB QUERY NAME
    becomes JOB [starts=SECONDS|never] runs=60 exit=0 doubts=0 silences=0 [refused] [lost]
                                         what becomes of a job; before it is launched
    loses RESOURCE OFFER                 its machine says unasked that a sold slot cannot be had
    says RESOURCE failed AGREEMENT [to=bank]  a resource says that it has failed, whatever its protocol thinks
    forge USER as BANK to RESOURCE paid AGREEMENT  a stranger speaks as the bank: unsealed, with its own seal,
                                         and with one that the bank has put on something else
    fault RESOURCE CALL [done|refused|nonsense] [transient|lasting] [count=1]    the next calls of hold, confirm,
                                         reservation, release or quote raise, and say perhaps that it will pass or not;
                                         `done`: after having done it; `refused`: they refuse; `nonsense`: they
                                         answer nothing that makes sense
    late RESOURCE CALL by=SECONDS [done=SECONDS] [limit=SECONDS] [lost|undone] [count=1]
                                         the machine's next calls of hold, confirm, reservation, release, quote or price
                                         are answered after so long and done when (default: then); after the limit
                                         nobody knows; `lost`: the answer never comes; `undone`: nothing is done either
    lose RESOURCE                        its machine loses everything that is set aside
    crash NAME [down=S] [before=EFFECT]  now, or before the next such effect (a record's or content's name)
    restart NAME
    run [SECONDS]                        let time pass: so long, or until every message has arrived and all is at rest
    show                                 balances, reservations, requests
"""

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ramp.errors import PluginError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Signed, end_of
from ramp.model.contents import Commitment, JobOrder, PaymentMade, Unverified
from ramp.model.instant import DAY, SECOND, Duration
from ramp.model.money import credits_text
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.seal import Role
from ramp.model.slot import Slot, SlotMove, StaticTerms
from ramp.plugins.interface import ResourcePlugin
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.effects import ResizeSlot
from ramp.protocol.events import AgreementResized
from ramp.protocol.resource.jobs.launching import LOCAL, LaunchTerms
from ramp.protocol.resource.seller import PriceRange
from ramp.protocol.timing import Timing
from simulation.market.actors import COMPOSITION, Crashed
from simulation.market.faults.late_guests import Fate, ForgetfulMachine
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.virtual_notary import VirtualNotary
from simulation.market.world import KEEPER, START, World
from simulation.resource.steady import SteadyMachine
from simulation.resource.waiting.drawn_starts import DrawnStarts
from tests.swarm.transcript import Transcript
from tests.swarm.virtual_launcher import JobFate, VirtualLauncher

LATENCY: Duration = 1000
REST = 30 * 60 * SECOND


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the transcripts of tests/protocol/scripts anew")


@dataclass
class _Rule:
    """What happens to the next messages that match."""

    verb: str
    pattern: str
    count: int
    by: Duration


@dataclass
class _LateRule:
    """What becomes of the next questions of one kind."""

    name: str
    kind: type
    fate: Fate
    count: int


CALLS = {
    "hold": fx.HoldSlot,
    "confirm": fx.ConfirmSlot,
    "release": fx.ReleaseSlot,
    "reservation": fx.LookUpSlot,
    "quote": fx.QuoteSlots,
    "price": fx.PriceSlots,
    "resize": ResizeSlot,
}


COMMANDS: dict[str, Callable[..., ev.Command]] = {
    "job": lambda job_id, query_id: ev.JobAsked(query_id, c.JobQuery(job_id, "")),
    "endjob": lambda job_id, query_id: ev.JobAsked(query_id, c.JobCancellation(job_id, "")),
    "output": lambda job_id, query_id, name: ev.JobAsked(query_id, c.JobOutputQuery(job_id, "", name, 0)),
    "withdraw": ev.RequestWithdrawn,
    "cancel": lambda agreement_id: ev.AgreementCancelled(agreement_id, "no longer needed"),
    "balance": lambda query_id: ev.AccountAsked(query_id, None, None),
    "sellers": ev.ResourcesAsked,
}
"""What a user is told by a verb, its name and the words after it."""


@dataclass
class _Options:
    """`words` and `key=value` of a command."""

    words: list[str]
    values: dict[str, str]

    def number(self, key: str, default: float = 0) -> float:
        return float(self.values.pop(key, default))

    def whole(self, key: str, default: int = 0) -> int:
        return int(self.values.pop(key, default))

    def duration(self, key: str, default: float = 0) -> Duration:
        return round(self.number(key, default) * SECOND)

    def text(self, key: str, default: str) -> str:
        return self.values.pop(key, default)

    def flag(self, word: str) -> bool:
        if word in self.words:
            self.words.remove(word)
            return True
        return False

    def done(self) -> None:
        assert not self.values, f"unknown options {self.values}"


def _options(words: Sequence[str]) -> _Options:
    values = dict(word.split("=", 1) for word in words if "=" in word)
    return _Options([word for word in words if "=" not in word], values)


def message_key(message: Message) -> str:
    return f"{message.sender}>{message.receiver} {message.performative.value}"


def effect_key(effect: fx.Effect) -> str:
    match effect:
        case fx.Persist(record):
            return type(record).__name__
        case fx.Send(message):
            content = message.content
            return type(content.body if isinstance(content, Signed) else content).__name__
        case _:
            return type(effect).__name__


@dataclass
class ScriptedMarket:
    """One market that obeys a script's commands; also the script of its `World`."""

    timing: dict[str, Duration] = field(default_factory=lambda: {"lease": 2 * DAY, "heartbeat": DAY})
    resources: list[ResourceSpec] = field(default_factory=list)
    users: list[UserSpec] = field(default_factory=list)
    rules: list[_Rule] = field(default_factory=list)
    late: list[_LateRule] = field(default_factory=list)
    crashes: dict[tuple[str, str], Crashed] = field(default_factory=dict)
    seen: list[Message] = field(default_factory=list)
    forged: list[Message] = field(default_factory=list)
    job_fates: dict[str, JobFate] = field(default_factory=dict)

    # -- what World asks -----------------------------------------------------------------------------------------

    def route(self, message: Message) -> Sequence[Duration]:
        self.seen.append(message)
        for rule in self.rules:
            if rule.count and fnmatch.fnmatchcase(message_key(message), rule.pattern):
                rule.count -= 1
                if rule.verb == "corrupt":
                    self.forged.append(message)
                return {"drop": (), "double": (LATENCY, LATENCY), "corrupt": ()}.get(rule.verb, (rule.by,))
        return (LATENCY,)

    def crash(self, name: str, effect: fx.Effect) -> Crashed | None:
        return self.crashes.pop((name, effect_key(effect)), None)

    def fate(self, name: str, question: fx.AskMachine | fx.PriceSlots) -> Fate | None:
        for rule in self.late:
            if rule.count and rule.name == name and isinstance(question, rule.kind):
                rule.count -= 1
                return rule.fate
        return None

    # -- the script's commands -----------------------------------------------------------------------------------

    def obey(self, line: str) -> list[str]:
        verb, *words = line.split()
        options = _options(words)
        shown = None
        if verb == "submit":
            self._submit(line)
        elif verb in COMMANDS:
            user, *about = words
            self.world.command(user, COMMANDS[verb](*about))
        else:
            if verb in ("drop", "double", "delay", "corrupt"):
                self._add_rule(verb, options)
            else:
                shown = getattr(self, f"do_{verb}")(options)
            options.done()
        if verb in ("timing", "resource", "user"):
            return []
        self._settle()
        lines, self.transcript.lines = self.transcript.lines, []
        return [*lines, *(shown or [])]

    def _settle(self) -> None:
        """Let what was commanded happen now, and forged messages arrive."""
        self.world.run(until=lambda: False, limit=0)
        while self.forged:
            self._deliver_forged(self.forged.pop(0))

    def _deliver_forged(self, message: Message) -> None:
        content = message.content
        signed = content.agreement if isinstance(content, Commitment) else content
        if not isinstance(signed, Signed):
            self.transcript.remark(f"{message_key(message)}: its seal breaks on the way", self.world.now)
            self.world.deliver(replace(message, seal=None), LATENCY)
            return
        kind = "agreement" if isinstance(signed.body, Agreement) else "cancellation"
        reference = signed.body.agreement_id
        self.transcript.remark(f"{message_key(message)}: its signature breaks on the way", self.world.now)
        broken = Unverified(kind, reference, "bad_signature", "the digest does not fit")
        self.world.deliver(replace(message, content=broken), LATENCY)

    def do_timing(self, options: _Options) -> None:
        for key in list(options.values):
            self.timing[key] = options.duration(key)

    def do_resource(self, options: _Options) -> None:
        kind = ForgetfulMachine if options.flag("forgetful") else SteadyMachine
        (name,) = options.words
        cores = options.whole("cores", 64)
        machine: ResourcePlugin = kind(name, cores, options.number("load", 0.5))
        if probability := options.number("starts"):
            machine = DrawnStarts(machine, probability, 0)
        os = options.text("os", "")
        self.resources.append(
            ResourceSpec(
                name,
                machine,
                StaticTerms(cores, operating_system=os or None),
                PriceRange(options.whole("start", 60), options.whole("minimum", 20)),
                launching=self._launching(options.text("launches", "")),
                launcher=VirtualLauncher(lambda job: self.job_fates.setdefault(job.job_id, JobFate())),
            )
        )

    def _launching(self, users: str) -> LaunchTerms | None:
        return LaunchTerms(LOCAL, {name: f"{name}1" for name in users.split(",")}) if users else None

    def do_launch(self, options: _Options) -> None:
        user, job_id, agreement_id = options.words
        begin = START + options.duration("start", 3600)
        order = JobOrder(job_id, agreement_id, options.whole("cores", 16), 1, begin, ("run",))
        self.world.command(user, ev.JobSubmitted(order))

    def do_becomes(self, options: _Options) -> None:
        starts = options.text("starts", "1")
        fate = JobFate(
            None if starts == "never" else round(float(starts) * SECOND),
            options.duration("runs", 60),
            options.whole("exit", 0),
            options.flag("refused"),
            options.flag("lost"),
            options.whole("doubts", 0),
            options.whole("silences", 0),
        )
        (job_id,) = options.words
        self.job_fates[job_id] = fate

    def do_loses(self, options: _Options) -> None:
        name, offer_id = options.words
        self.world._answer(name, ev.SlotsTended(((offer_id, "node 3 is down"),)))

    def do_moves(self, options: _Options) -> None:
        name, offer_id, placement = options.words
        move = SlotMove(placement, START + options.duration("at", 0))
        self.world._answer(name, ev.SlotsTended((), ((offer_id, move),)))

    def do_user(self, options: _Options) -> None:
        (name,) = options.words
        self.users.append(UserSpec(name, options.whole("credits", 100_000) * 100))

    def do_market(self, options: _Options) -> None:
        self.transcript = Transcript(START, registrations=options.flag("registrations"))
        self.world = World(
            self.resources,
            self.users,
            seed=0,
            composition=replace(COMPOSITION, timing=Timing(**self.timing)),
            observer=self.transcript,
            script=self,
            fates=self.fate,
        )
        self.world.approve = lambda _: None
        self.world.run(limit=2 * LATENCY)

    def _submit(self, line: str) -> None:
        head, *parts = line.split(" / ")
        options = _options(head.split()[1:])
        auction = ev.AuctionOptions(
            rounds=options.whole("rounds", 1),
            round_time=options.duration("round", 15),
            approval=ev.Approval(options.text("approval", "auto")),
            quote_only=options.flag("quote"),
        )
        units = tuple(self._unit(number, _options(part.split())) for number, part in enumerate(parts, 1))
        options.done()
        user, request_id = options.words
        self.world.command(user, ev.RequestSubmitted(request_id, RequestForQuotation(units), auction))

    def _unit(self, number: int, options: _Options) -> RequestUnit:
        start = START + options.duration("start", 3600)
        wall = options.duration("wall", 3600)
        unit = RequestUnit(
            number,
            options.whole("price", 70),
            start + wall + options.duration("slack"),
            TotalCores(options.whole("cores", 16)),
            not_before=start,
            wall_time=wall,
            operating_system=options.text("os", "") or None,
            start_probability=options.number("probability") or None,
            sites=tuple(filter(None, options.text("sites", "").split(","))) or None,
        )
        options.done()
        return unit

    def do_approve(self, options: _Options) -> None:
        user, request_id, answer, *chosen = options.words
        sellers = tuple((int(unit), seller) for unit, _, seller in (each.partition(":") for each in chosen))
        self.world.command(user, ev.OffersApproved(request_id, answer == "yes", sellers))

    def do_resize(self, options: _Options) -> None:
        quote = options.flag("quote")
        user, agreement_id, *others = options.words
        cores, until = options.whole("cores") or None, options.duration("until")
        price, most = options.whole("price") or None, options.whole("most") * 100 or None
        end = START + until if until else None
        self.world.command(user, AgreementResized(agreement_id, cores, end, quote, price, most, tuple(others)))

    def do_leave(self, options: _Options) -> None:
        (name,) = options.words
        self.world.perform(name, self.world.resources[name].leave(self.world.now))

    def do_occupy(self, options: _Options) -> None:
        (name,) = options.words
        start = START + options.duration("start", 3600)
        slot = Slot(start, start + options.duration("wall", 3600), options.whole("cores", 16), 0.0)
        machine, now = self.world.machines[name], self.world.now
        unit = RequestUnit(1, 1, slot.end, TotalCores(slot.cores), not_before=start)
        keys = ("own-job", *(f"own-job-{number}" for number in range(2, 10)))
        key = next(each for each in keys if machine.reservation(each, now) is None)
        machine.hold(key, unit, slot, now + DAY, now)
        machine.confirm(key, now)

    def do_deposit(self, options: _Options) -> None:
        account, deposit_id = options.words
        amount = options.whole("credits") * 100
        self.world.command(KEEPER, ev.KeeperAsked(c.DepositOrder(deposit_id, account, amount, "by the keeper")))

    def do_overview(self, options: _Options) -> None:
        (query_id,) = options.words
        self.world.command(KEEPER, ev.KeeperAsked(c.OverviewQuery(query_id, None, None)))

    def _add_rule(self, verb: str, options: _Options) -> None:
        by = options.duration("by", 0)
        self.rules.append(_Rule(verb, " ".join(options.words), options.whole("count", 1), by))

    def do_replay(self, options: _Options) -> None:
        sender = options.text("as", "")
        pattern = " ".join(options.words)
        message = next(each for each in reversed(self.seen) if fnmatch.fnmatchcase(message_key(each), pattern))
        message = replace(message, sender=sender or message.sender)
        self.transcript.remark(f"{message_key(message)} comes again", self.world.now)
        self.world.deliver(message, 0)

    def do_says(self, options: _Options) -> None:
        name, _, agreement_id = options.words
        party = self.world.resources[name]
        sold = next(
            each
            for each in party.participants.values()
            if each.agreement is not None and each.agreed.agreement_id == agreement_id
        )
        failed = Signed(end_of(sold.agreed, "the machine is broken", self.world.now, RefusalCode.SLOT_TAKEN))
        receiver = options.text("to", sold.user)
        message = Message(Performative.FAILURE, name, receiver, sold.offer.request_id, failed)
        self.world.perform(name, [fx.Send(message)])

    def do_forge(self, options: _Options) -> None:
        rogue, _, victim, _, receiver, _, agreement_id = options.words
        paid = PaymentMade(agreement_id, f"payment:{agreement_id}", 100)
        forged = Message(Performative.AGREE, victim, receiver, "r1", paid)
        own = VirtualNotary(rogue, Role.USER).seal(forged, self.world.now)
        bank_word = next(
            each
            for each in reversed(self.seen)
            if each.sender == victim and each.seal is not None and each.receiver != receiver
        )
        for message in (forged, own, replace(forged, seal=bank_word.seal), replace(bank_word, receiver=receiver)):
            self.world.deliver(message, 0)
        refused = self.world.refused
        self.world.run(limit=LATENCY)
        self.transcript.remark(
            f"{rogue} speaks as {victim} in four ways; {self.world.refused - refused} are dropped", self.world.now
        )

    def do_fault(self, options: _Options) -> None:
        ways = ("done", "refused", "nonsense", "nothing")
        how = next((word for word in ways if options.flag(word)), "raises")
        says = next((word for word in ("transient", "lasting") if options.flag(word)), "")
        name, call = options.words
        machine: Any = self.world.machines[name]
        original = getattr(machine, call)
        left = options.whole("count", 1)

        def faulty(*arguments: object) -> object:
            nonlocal left
            if not left:
                return original(*arguments)
            left -= 1
            if how == "refused":
                return Refusal(0, RefusalCode.SLOT_TAKEN, detail="the batch system has given it away")
            if how == "nonsense":
                return "yes"
            if how == "nothing":
                return None
            if how == "done":
                original(*arguments)
            if says:
                raise PluginError(name, "the batch system does not answer", transient=says == "transient")
            raise TimeoutError("the batch system does not answer")

        setattr(machine, call, faulty)

    def do_late(self, options: _Options) -> None:
        undone = options.flag("undone")
        lost = options.flag("lost") or undone
        name, call = options.words
        by, limit = options.duration("by"), options.duration("limit")
        done = options.duration("done", by / SECOND)
        fate = Fate(None if undone else done, limit or None, None if lost else by)
        self.late.append(_LateRule(name, CALLS[call], fate, options.whole("count", 1)))

    def do_lose(self, options: _Options) -> None:
        (name,) = options.words
        machine = self.world.machines[name]
        for entry in machine.reservations(self.world.now):
            machine.release(entry.key, self.world.now)

    def do_crash(self, options: _Options) -> None:
        (name,) = options.words
        down = options.duration("down") or None
        effect = options.text("before", "")
        if effect:
            self.crashes[name, effect] = Crashed(down)
        else:
            self.world.crash(name, down)

    def do_restart(self, options: _Options) -> None:
        (name,) = options.words
        self.world.restart(name)

    def do_run(self, options: _Options) -> None:
        end = self.world.now + (round(float(options.words[0]) * SECOND) if options.words else REST)
        while self.world.now < end:
            before = self.world.now
            self.world.run(until=lambda: bool(self.forged), limit=end - self.world.now)
            self._settle()
            if self.world.now == before:
                break
        if options.words:
            self.world.run(limit=end - self.world.now)

    def do_show(self, options: _Options) -> list[str]:
        world = self.world
        lines = [
            f"{balance.account.account_id} has {credits_text(balance.posted)}"
            for balance in world.ledger.balances()
            if balance.account.account_id in world.deposits
        ]
        for name, machine in world.machines.items():
            lines += [
                f"{name} has {entry.reservation_id} {'firm' if entry.firm else 'held'} for {entry.key}"
                for entry in machine.reservations(world.now)
            ]
        for user in world.users.values():
            lines += [f"{user.name} has {request_id} {each.stage}" for request_id, each in user.purchases.items()]
        return lines


@dataclass
class _Block:
    """Commands and what they bring about; comments go with the commands."""

    commands: list[str]
    expected: list[str]


def read_script(path: Path) -> list[_Block]:
    blocks = []
    for part in path.read_text().strip().split("\n\n"):
        commands, separator, expected = part.partition("\n----")
        assert separator or all(line.startswith("#") for line in part.splitlines()), f"{path.name}: no ---- in {part!r}"
        blocks.append(_Block(commands.splitlines(), expected.strip("\n").splitlines()))
    return blocks


def write_script(path: Path, blocks: Sequence[_Block]) -> None:
    texts = []
    for block in blocks:
        comment_only = all(line.startswith("#") for line in block.commands)
        lines = block.commands if comment_only else [*block.commands, "----", *block.expected]
        texts.append("\n".join(lines))
    path.write_text("\n\n".join(texts) + "\n")


def play(blocks: Sequence[_Block]) -> list[_Block]:
    """Obey a script and return it with what really happened."""
    market = ScriptedMarket()
    played = []
    for block in blocks:
        lines: list[str] = []
        for command in block.commands:
            if not command.startswith("#"):
                lines += market.obey(command)
        played.append(_Block(block.commands, lines))
    return played
