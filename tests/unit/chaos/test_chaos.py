"""The parts of a chaos run: whom blows strike, what a market's books must say, and that each check bites."""

import re
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from ramp.agents.building import opening_accounts
from ramp.composition import open_accounts
from ramp.model.contents import OrderLine
from ramp.model.instant import HOUR, MINUTE
from ramp.model.slot import Reservation, Slot
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.ledger.store import LedgerStore
from ramp.runtime.state_folder import StateFolder
from simulation.resource.reservation_book import ReservationBook
from tests.chaos import checks
from tests.chaos.blows import SERVER, SUPERVISOR, Kind, turns
from tests.chaos.market import configuration

NOW = SystemClock().now()
SLOT = Slot(NOW + 3 * HOUR, NOW + 4 * HOUR, 200, 0.0)


def test_every_victim_is_struck_in_every_turn_and_a_seed_says_how() -> None:
    victims = [("", name) for name in ("market", "users", "north1", SERVER, SUPERVISOR)]
    first, second = (list(islice(turns(victims, Random(7)), 50)) for _ in range(2))
    assert first == second
    for begin in range(0, 50, 5):
        assert sorted((blow.site, blow.victim) for blow in first[begin : begin + 5]) == sorted(victims)
    assert {blow.kind for blow in first if blow.victim != SUPERVISOR} == set(Kind)
    assert {blow.kind for blow in first if blow.victim == SUPERVISOR} == {Kind.KILL}


def test_most_at_once_is_that_of_brute_force() -> None:
    random = Random(1)
    for _ in range(200):
        live = []
        for key in range(random.randint(0, 6)):
            start = random.randint(0, 10)
            slot = Slot(start, start + random.randint(1, 5), random.randint(1, 9), 0.0)
            live.append(Reservation(str(key), f"r-{key}", slot, True, None))
        at_once = [sum(r.slot.cores for r in live if r.slot.start <= t < r.slot.end) for t in range(16)]
        assert checks.most_at_once(live) == max(at_once)


@pytest.fixture
def market(tmp_path: Path) -> tuple[SwarmConfig, StateFolder]:
    """A market's files, with one unit that alice has bought of north1 and paid."""
    (tmp_path / "market.toml").write_text(configuration(server="embedded"))
    config, state = load_config(tmp_path / "market.toml"), StateFolder(tmp_path / "state")
    state.prepare()
    with LedgerStore.open(state.ledger) as ledger:
        open_accounts(opening_accounts(config), ledger, NOW)
        pay(ledger, "order-1", "a-1", "offer-1")
    reserve(state, "north1", "offer-1")
    return config, state


def pay(ledger: LedgerStore, order_id: str, agreement_id: str, offer_id: str) -> None:
    line = OrderLine(agreement_id, "north1@localhost", 500, offer_id)
    ledger.reserve_order(order_id, "alice@localhost", [line], NOW + MINUTE, at=NOW)
    ledger.countersign(agreement_id, at=NOW, starts_at=SLOT.start)


def reserve(state: StateFolder, name: str, key: str, *, firm: bool = True) -> None:
    book = ReservationBook("test", name, state.reservations)
    with book.writing() as change:
        change.hold(key, 1, SLOT, NOW + HOUR, NOW)
        if firm:
            change.confirm(key, NOW)


def wrong(market: tuple[SwarmConfig, StateFolder]) -> dict[str, list[str]]:
    found, _ = checks.of_files([market])
    return {check: told for check, told in found.items() if told}


def test_nothing_is_wrong_with_what_is_paid_and_held(market: tuple[SwarmConfig, StateFolder]) -> None:
    found, paid = checks.of_files([market])
    assert not any(found.values()), found
    assert paid == {"a-1"}


@pytest.mark.parametrize(
    ("offer_id", "check", "told"),
    [
        ("offer-2", checks.HELD, "offer offer-2 is paid and not reserved"),
        ("offer-1", checks.ONCE, "offer offer-1 is paid 2 times"),
    ],
)
def test_what_is_paid_amiss_is_found(
    market: tuple[SwarmConfig, StateFolder], offer_id: str, check: str, told: str
) -> None:
    with LedgerStore.open(market[1].ledger) as ledger:
        pay(ledger, "order-2", "a-2", offer_id)
    assert wrong(market) == {check: [told]}


def test_what_is_reserved_and_not_paid_is_found_and_so_is_a_machine_sold_twice(
    market: tuple[SwarmConfig, StateFolder],
) -> None:
    reserve(market[1], "north1", "offer-3")
    assert wrong(market) == {
        checks.ONCE: ["offer offer-3 is reserved and not paid"],
        checks.ROOM: ["north1 has 256 cores, of which 400 are sold at one time"],
    }


def test_what_is_still_open_is_found(market: tuple[SwarmConfig, StateFolder]) -> None:
    with LedgerStore.open(market[1].ledger) as ledger:
        line = OrderLine("a-4", "north2@localhost", 500, "offer-4")
        ledger.reserve_order("order-4", "bob@localhost", [line], NOW + MINUTE, at=NOW)
    reserve(market[1], "north2", "offer-4", firm=False)
    found = wrong(market)
    assert "order-4 is still reserved" in found[checks.SETTLED]
    (held,) = found[checks.ONCE]
    assert re.fullmatch(r"north2-[0-9a-f]{6}-1 is still held, and not sold", held)
