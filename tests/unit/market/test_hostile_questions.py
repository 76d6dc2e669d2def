"""A question with a value that an agent cannot read is refused at once, with the reason: every verb, every field."""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

import ramp
from ramp.control import requests as rq
from ramp.control.answering import advance, commanded
from ramp.control.codec import decode_request, encode_request
from ramp.control.events import Event, MarketRefusalCode, Refused, refusal
from ramp.errors import ControlLineError, RampError
from ramp.model import contents as c
from ramp.model.contents import JobOrder, JobPeer, JobVariable
from ramp.model.instant import HOUR, Instant
from ramp.model.slot import StaticTerms
from ramp.protocol import events as ev
from ramp.protocol import progress as pr
from ramp.protocol.events import AgreementResized
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.seller import PriceRange
from simulation.market.actors import COMPOSITION, KEEPER
from simulation.market.simulated_access import ANSWER_LIMIT, REGISTRATION, SimulatedAccess
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.wire import Wire
from simulation.market.world import START, World
from simulation.resource.steady import SteadyMachine
from tests.blocking_line import connected
from tests.swarm.virtual_launcher import JobFate, VirtualLauncher
from tests.unit.market.conftest import wanted

TEXTS = (
    *("", " ", "a b", "./a", "../a", "/a", "ünï", "a\nb", "a\0b", "\x1b[2J", "\udcff", "\ufffe", "<&\"'>"),
    *("a" * 300, "x" * 10**5),
)
NUMBERS = (-1, 0, 2**31, 2**63, 10**30, -(10**30))


class Market:
    """A market of one seller that launches jobs, whose messages travel as text."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, pr.Progress]] = []
        launcher = VirtualLauncher(lambda _: JobFate(starts_after=0))
        machine, terms, prices = SteadyMachine("m", 64, 0.25), StaticTerms(64), PriceRange(40, 20)
        launching = LaunchTerms("virtual", {"alice": "alice1"})
        seller = ResourceSpec("m", machine, terms, prices, launching=launching, launcher=launcher)
        wire = Wire(COMPOSITION.roles(["m"], ["alice"]), START)
        users = [UserSpec("alice", 10**9)]
        unread: list[list[pr.Progress]] = []

        def listen(who: str, told: pr.Progress, _: Instant) -> None:
            self.heard.append((who, told))
            if who == "alice":
                for each in unread:
                    each.append(told)

        self.world = World([seller], users, seed=1, wire=wire, listen=listen)
        self.world.run(limit=REGISTRATION)
        self.access = SimulatedAccess(self.world, unread, "alice")

    def said(self, request: rq.Request) -> Event:
        """Return the answer to a request that has travelled over the control channel."""
        try:
            read = decode_request(encode_request(request))
        except ControlLineError as error:
            return Refused(MarketRefusalCode.NOT_UNDERSTOOD, str(error))
        if isinstance(read, ev.KeeperAsked):
            return self._kept(read)
        with connected(self.access.open) as line:
            *_, last = line.events(read)
        return last

    def _kept(self, request: ev.KeeperAsked) -> Event:
        steps = commanded(request, lambda kind: kind, "")
        try:
            command = advance(steps)
        except RampError as error:
            return refusal(error)
        assert isinstance(command, ev.KeeperAsked)
        self.heard.clear()
        self.world.command(KEEPER, command)
        self.world.run(until=lambda: any(who == KEEPER for who, _ in self.heard), limit=ANSWER_LIMIT)
        advance(steps)
        said = advance(steps, next(told for who, told in self.heard if who == KEEPER))
        assert isinstance(said, Event)
        return said


@pytest.fixture(scope="module")
def market() -> Market:
    return Market()


@pytest.fixture(scope="module")
def order(market: Market) -> JobOrder:
    """A job that runs on a bought slot."""
    found = ramp.Market(market.access).submit(wanted(end="+10h"))
    assert found.committed, found.reason
    (unit,) = found.units
    peer = JobPeer(1, "m", unit.reservation_id, 8)
    begin = market.world.now
    order = JobOrder("job-1", unit.agreement_id, 8, 1, begin, ("a",), (peer,), (JobVariable("A", "b"),), "0" * 64)
    assert not isinstance(said := market.said(ev.JobSubmitted(order)), Refused), said
    return order


def hostile(value: Any) -> Iterator[Any]:
    """Yield copies of a value with one hostile field each, at any depth."""
    if is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            for other in hostile(getattr(value, each.name)):
                yield replace(value, **{each.name: other})
    elif isinstance(value, tuple):
        for number, each in enumerate(value):
            for other in hostile(each):
                yield (*value[:number], other, *value[number + 1 :])
    elif isinstance(value, str):
        yield from TEXTS
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from NUMBERS


def bought(market: Market) -> str:
    """Buy a slot; return the id of its agreement."""
    found = ramp.Market(market.access).submit(wanted(cores=1, end="+10h"))
    assert found.committed, found.reason
    return found.units[0].agreement_id


def test_nothing_that_is_ordered_about_a_purchase_stays_without_an_answer(market: Market) -> None:
    """A cancellation whose reason cannot be written would be sent for ever."""
    standing = market.access.world.users["alice"].agreement_state
    for reason in TEXTS:
        agreement_id = bought(market)
        found = market.said(ev.AgreementCancelled(agreement_id, reason))
        refused = isinstance(found, Refused)
        assert standing(agreement_id) == ("active" if refused else "cancelled"), (reason[:80], found)
        if refused:
            market.said(ev.AgreementCancelled(agreement_id, ""))
    agreement_id = bought(market)
    wished = AgreementResized(agreement_id, 1, market.world.now, quote_only=True, price=1, max_cost=1, together=("x",))
    for other in hostile(wished):
        market.said(other)
    for text in TEXTS:
        for given in (rq.Watch(text or "x"), ev.RequestWithdrawn(text), rq.Submit(text)):
            market.said(given)


QUESTIONS: dict[str, Callable[[JobOrder], rq.Request]] = {
    "account": lambda _: ev.AccountAsked("", 0, 0),
    "machine": lambda _: ev.MachineAsked("", "m", HOUR),
    "resources": lambda _: ev.ResourcesAsked("", "resource-trader"),
    "launch": lambda order: ev.JobSubmitted(replace(order, job_id="job-2")),
    "job": lambda order: ev.JobAsked("", c.JobQuery(order.job_id, "")),
    "cancel_job": lambda order: ev.JobAsked("", c.JobCancellation(order.job_id, "")),
    "job_output": lambda order: ev.JobAsked("", c.JobOutputQuery(order.job_id, "", "stdout", 0)),
    "job_input": lambda order: ev.JobAsked("", c.JobInputPiece("job-3", order.agreement_id, 0, "YQ==")),
    "deposit": lambda _: ev.KeeperAsked(c.DepositOrder("deposit-1", "alice", 1, "memo")),
    "overview": lambda _: ev.KeeperAsked(c.OverviewQuery("", 0, 0)),
}


@pytest.mark.parametrize("verb", QUESTIONS)
def test_no_question_stays_without_an_answer(market: Market, order: JobOrder, verb: str) -> None:
    question = QUESTIONS[verb](order)
    assert not isinstance(said := market.said(question), Refused), said
    silent = []
    for other in hostile(question):
        if isinstance(other, ev.MachineAsked) and other.resource != "m":
            continue  # its address is checked by the transport
        found = market.said(other)
        if isinstance(found, Refused) and (
            found.code in (MarketRefusalCode.NO_ANSWER, MarketRefusalCode.AGENT_FAILED) or not found.reason.strip()
        ):
            silent.append((f"{other!r:.200}", found))
    assert silent == []


def test_the_reason_names_the_value(market: Market, order: JobOrder) -> None:
    for given, named in (
        (ev.AccountAsked("", -62_135_596_800_000_000, None), "1970"),
        (ev.JobAsked("", c.JobOutputQuery(order.job_id, "", "out\0x", 0)), "U+0000"),
        (ev.MachineAsked("", "m", 10**30), "duration"),
    ):
        found = market.said(given)
        assert isinstance(found, Refused)
        assert (found.code, named in found.reason) == (MarketRefusalCode.NOT_UNDERSTOOD, True), found
