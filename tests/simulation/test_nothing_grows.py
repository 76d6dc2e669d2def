"""Nothing grows with the number of purchases: what is over leaves memory and journal, and is in the archive for good.

What leaves is no longer known to anybody but the bank: old messages are said again, and nothing comes of them. An agent
that crashes or cannot write around its archiving loses nothing.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ramp.model.acl import Message
from ramp.model.contents import Commitment, DirectoryListing, DirectoryQuery, Registered, Registration
from ramp.model.instant import MILLISECOND, MINUTE, SECOND, Instant
from ramp.protocol import effects as fx
from ramp.protocol.records import RequestConcluded
from ramp.protocol.transition_tables import ParticipantState
from simulation.market.actors import Crashed
from simulation.market.faults.breakdowns import WatchedJournal, no_space
from simulation.market.market_view import standing_payments
from simulation.market.observing import Observer
from simulation.market.virtual_notary import VirtualNotary
from tests.simulation.long_market import PAUSE, TIMING, LongMarket

DISCOVERY = (Registration, Registered, DirectoryQuery, DirectoryListing)


class Watching(Observer):
    """An observer that keeps what is sent, and the effects that change something."""

    def __init__(self) -> None:
        self.sent_messages: list[Message] = []
        self.changes: list[fx.Effect] = []

    def carried_out(self, name: str, effect: fx.Effect, now: Instant) -> None:
        if isinstance(effect, fx.Persist | fx.HoldSlot | fx.ConfirmSlot | fx.SaveAgreement):
            self.changes.append(effect)

    def sent(self, message: Message, delays: Sequence[int], now: Instant) -> None:
        if not isinstance(message.content, DISCOVERY):
            self.sent_messages.append(message)


def check_all_over(market: LongMarket, purchases: int) -> None:
    """Nothing of any purchase is at hand, and all of it is in the archives, each record once."""
    parties = market.parties()
    assert market.outcomes == {"committed": purchases}
    assert not parties["alice"].purchases
    assert not parties["alice"].agreements
    assert not parties["alice"]._bought
    for name, journal in market.journals().items():
        assert journal.records() == ()
        assert len(set(map(repr, journal.archived))) == len(journal.archived), name
    for name, machine in market.world.machines.items():
        assert not parties[name].participants
        assert not machine._book._entries
    concluded = [record for record in market.journals()["alice"].archived if isinstance(record, RequestConcluded)]
    assert len({record.request_id for record in concluded}) == len(concluded) == purchases
    bought = {unit.agreement_id for record in concluded for unit in record.outcome.units}
    assert bought == set(standing_payments(market.world))


def grown(before: dict[str, int], after: dict[str, int]) -> dict[str, float]:
    """What has grown by more than a tenth, and by how much; a kilobyte is nothing."""
    return {name: after[name] / size for name, size in before.items() if after[name] > 1.1 * size + 1024}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("first", "more"), [(40, 50), pytest.param(1000, 4000, marks=pytest.mark.slow)])
def test_memory_is_flat_once_slots_end(first: int, more: int) -> None:
    market = LongMarket()
    market.buy(first)  # from the 38th on one ends as another begins
    before = market.sizes()
    market.buy(more)
    assert grown(before, market.sizes()) == {}
    market.outlast()
    check_all_over(market, first + more)


def test_what_has_ended_lately_is_at_hand() -> None:
    """An hour after its slot a purchase still is; some minutes later it is not."""
    market = LongMarket()
    market.buy(1)
    world = market.world
    (agreement, _) = world.users["alice"].agreements.values()
    world.run(limit=agreement.offer.end + TIMING.retention - SECOND - world.now)
    assert set(world.users["alice"].purchases) == {"request-0"}
    assert [len(party.participants) for party in world.resources.values()] == [2, 0]
    world.run(limit=10 * MINUTE)
    check_all_over(market, 1)


@pytest.mark.parametrize("sealed_anew", [False, True])
def test_nothing_comes_of_old_messages_that_are_said_again(sealed_anew: bool) -> None:
    """Every message of three purchases comes to its party once more when all is forgotten: as it was, or sealed now.

    No shell is in between that would refuse old seals, and every sender may say again what it has once said.
    """
    watching = Watching()
    market = LongMarket(observer=watching)
    market.buy(3)
    market.outlast()
    check_all_over(market, 3)
    said, watching.changes = list(watching.sent_messages), []
    posted = standing_payments(market.world)
    balances = market.world.ledger.balances()
    assert any(isinstance(message.content, Commitment) for message in said)
    for message in said:
        again = message
        if sealed_anew and message.seal is not None:
            again = VirtualNotary(message.sender, message.seal.role).seal(replace(message, seal=None), market.world.now)
        market.world._actors[message.receiver].host.deliver(again, market.world.now)
        market.world.run(limit=MILLISECOND)
    market.world.run(limit=MINUTE)
    assert watching.changes == []
    assert (standing_payments(market.world), market.world.ledger.balances()) == (posted, balances)
    check_all_over(market, 3)


class CrashAt:
    """A script: whoever is about to carry out the n-th effect of a kind crashes, and comes back ten seconds later."""

    def __init__(self, kind: type, number: int) -> None:
        self._kind = kind
        self._left = number
        self.crashed: list[str] = []

    def route(self, message: Message) -> tuple[int, ...] | None:
        return None

    def crash(self, name: str, effect: fx.Effect) -> Crashed | None:
        if isinstance(effect, self._kind):
            self._left -= 1
            if self._left == 0:
                self.crashed.append(name)
                return Crashed(10 * SECOND)
        return None


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("kind", [fx.Archive, fx.ForgetSlots])
def test_a_crash_before_archiving_loses_nothing(kind: type, number: int) -> None:
    script = CrashAt(kind, number)
    market = LongMarket(script=script)
    market.buy(8)
    market.outlast()
    market.outlast()
    assert len(script.crashed) == 1
    check_all_over(market, 8)


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("name", ["alice", "res0", "res1"])
def test_archiving_that_fails_or_seems_to_loses_nothing(name: str, done: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal says that its disk is full, the first three times, with the records moved or not."""
    failures: list[str] = []
    archive = WatchedJournal.archive

    def fails(self: WatchedJournal, references: Sequence[str]) -> None:
        if self._name != name or len(failures) == 3:
            archive(self, references)
            return
        failures.append(name)
        if done:
            archive(self, references)
        raise no_space(name)

    monkeypatch.setattr(WatchedJournal, "archive", fails)
    market = LongMarket()
    market.buy(8)
    for _ in range(3):
        market.outlast()
    assert len(failures) == 3 or done
    check_all_over(market, 8)


def test_a_restart_in_the_middle_begins_with_what_is_open_only() -> None:
    market = LongMarket()
    market.buy(60)
    world = market.world
    before = {name: party.participants.keys() for name, party in world.resources.items()}
    purchases = dict(world.users["alice"].purchases)
    for name in ("alice", "res0", "res1"):
        world.crash(name)
        world.restart(name)
    world.run(limit=PAUSE)
    assert len(purchases) < 50
    assert set(purchases) >= set(world.users["alice"].purchases) >= set(list(purchases)[2:])
    for name, party in world.resources.items():
        assert set(before[name]) >= set(party.participants)
        assert {each.state for each in party.participants.values()} == {ParticipantState.SOLD}
    market.buy(10)
    market.outlast()
    check_all_over(market, 70)
