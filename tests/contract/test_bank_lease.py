"""Two Banking Agents at one ledger on PostgreSQL: one epoch holds at a time, and what is of an older one fails."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine, text

from ramp.errors import LedgerUnavailable
from ramp.ledger.entry import AccountKind
from ramp.model.contents import OrderLine, OrderState
from ramp.model.instant import SECOND, Duration
from ramp.runtime.ledger.bank_lease import BankLease, _make, fenced_ledger
from ramp.runtime.ledger.store import LedgerStore

pytestmark = [pytest.mark.postgresql, pytest.mark.slow]

LEASE = 2 * SECOND
LONG_LEASE = 15 * SECOND
"""No busy computer stands still for so long between two signs."""
WAIT_S = 100.0


@pytest.fixture
def claim(postgresql_url: str) -> Iterator[Callable[..., BankLease]]:
    """`claim(holder)` makes the lease of an agent, for `LEASE` or another duration."""
    made: list[BankLease] = []

    def make(holder: str, duration: Duration = LEASE) -> BankLease:
        made.append(BankLease(postgresql_url, holder, duration=duration))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def opened(claim: Callable[[str], BankLease], postgresql_url: str) -> Iterator[Callable[[str], LedgerStore]]:
    """`opened(holder)` waits until the agent is the bank, and opens its ledger."""
    stores: list[LedgerStore] = []

    def open_store(holder: str) -> LedgerStore:
        lease = claim(holder)
        taken(lease)
        stores.append(fenced_ledger(lease, postgresql_url))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


def taken(lease: BankLease) -> None:
    """Wait until a lease is taken."""
    began = time.monotonic()
    while not lease.take():
        assert time.monotonic() < began + WAIT_S
        time.sleep(0.05)


def test_the_other_waits_as_long_as_there_are_signs_and_a_lease_longer(claim: Callable[..., BankLease]) -> None:
    first, second = claim("bank", LONG_LEASE), claim("bank-2", LONG_LEASE)
    assert first.take()
    for _ in range(4):
        time.sleep(LONG_LEASE / SECOND / 4)
        first.renew()
        assert not second.take()
        assert second.active == "bank"
    taken(second)
    assert second.epoch == first.epoch + 1


def test_who_gives_up_is_followed_at_once(claim: Callable[[str], BankLease]) -> None:
    first, second = claim("bank"), claim("bank-2")
    assert first.take()
    first.give_up()
    assert second.take()
    first.give_up()  # it is not the bank any more, so this says nothing
    assert not claim("bank-3").take()


def test_who_comes_back_under_its_own_name_need_not_wait(claim: Callable[[str], BankLease]) -> None:
    assert claim("bank").take()
    again = claim("bank")
    assert again.take()
    assert again.epoch == 2


def test_a_sign_of_an_older_epoch_is_refused(claim: Callable[[str], BankLease]) -> None:
    first, second = claim("bank"), claim("bank-2")
    first.take()
    taken(second)
    with pytest.raises(LedgerUnavailable, match=r"bank-2 has taken over \(epoch 2, this one had 1\)"):
        first.renew()
    with pytest.raises(LedgerUnavailable):
        first.assert_held()
    second.renew()
    second.assert_held()


def test_reads_and_writes_of_an_older_epoch_fail_and_change_nothing(opened: Callable[[str], LedgerStore]) -> None:
    old = opened("bank")
    old.open_account("alice", AccountKind.USER, at=0)
    old.open_account("res", AccountKind.RESOURCE, at=0)
    old.deposit("d", "alice", 100, at=0)
    order = old.reserve_order("o", "alice", [OrderLine("a", "res", 60)], 10**18, at=0)
    assert order.state is OrderState.RESERVED
    new = opened("bank-2")
    for wrong in (
        lambda: old.balance("alice"),
        lambda: old.order("o"),
        lambda: old.open_orders(),
        lambda: old.audit(),
        lambda: old.countersign("a", at=0, starts_at=1),
        lambda: old.expire_orders(10**18),
        lambda: old.deposit("more", "alice", 5, at=0),
    ):
        with pytest.raises(LedgerUnavailable):
            wrong()
    assert new.balance("alice").posted == 100
    assert new.countersign("a", at=0, starts_at=1).state is OrderState.POSTED
    assert new.audit() == []


def test_a_transaction_whose_bank_stands_still_keeps_nobody_out(
    opened: Callable[[str], LedgerStore], claim: Callable[[str], BankLease]
) -> None:
    """As when the process is stopped between two statements: the database ends the transaction."""
    old, second = opened("bank"), claim("bank-2")
    stopped, may_go_on, ended = threading.Event(), threading.Event(), []

    def stand_still(_: object) -> None:
        stopped.set()
        assert may_go_on.wait(WAIT_S)

    def work() -> None:
        try:
            old.write(lambda records: (stand_still(records), records.balances()))
        except LedgerUnavailable as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert stopped.wait(WAIT_S)
        taken(second)
    finally:
        may_go_on.set()
        thread.join()
    assert [type(error) for error in ended] == [LedgerUnavailable]  # also when it was tried once more


def test_who_takes_over_waits_for_what_is_under_way(
    opened: Callable[[str], LedgerStore], claim: Callable[[str], BankLease]
) -> None:
    old, second = opened("bank"), claim("bank-2")
    old.open_account("alice", AccountKind.USER, at=0)
    began, order = threading.Event(), []

    def write() -> None:
        def work(records: object) -> None:
            began.set()
            end = time.monotonic() + 1.5 * LEASE / SECOND
            while time.monotonic() < end:  # at work, and so not idle
                records.balances()  # type: ignore[attr-defined]
            order.append("written")

        old.write(work)

    thread = threading.Thread(target=write)
    thread.start()
    assert began.wait(WAIT_S)
    taken(second)
    order.append("taken")
    thread.join()
    assert order == ["written", "taken"]


def test_of_many_that_reach_for_it_at_once_one_gets_it(claim: Callable[[str], BankLease]) -> None:
    leases = [claim(f"bank-{number}") for number in range(8)]
    assert leases[0].take()
    leases[0].give_up()
    start = threading.Barrier(7)

    def reach(lease: BankLease) -> bool:
        start.wait(WAIT_S)
        return lease.take()

    with ThreadPoolExecutor(7) as threads:
        taken_by = [lease for lease, took in zip(leases[1:], threads.map(reach, leases[1:]), strict=True) if took]
    assert [lease.epoch for lease in taken_by] == [2]


def test_the_time_is_the_databases(claim: Callable[[str], BankLease], postgresql_url: str) -> None:
    lease = claim("bank")
    engine = create_engine(postgresql_url)
    with engine.connect() as connection:
        before = lease.time()
        shown = connection.execute(text("SELECT extract(epoch FROM clock_timestamp()) * 1000000")).scalar_one()
        after = lease.time()
    engine.dispose()
    assert before - SECOND < shown < after + SECOND


def test_a_database_that_does_not_answer_makes_nobody_the_bank() -> None:
    lease = BankLease("postgresql://nobody@127.0.0.1:1/none", "bank", duration=LEASE)
    with pytest.raises(LedgerUnavailable):
        lease.take()


def test_a_bank_that_waits_for_the_others_tables_finds_them(
    claim: Callable[[str], BankLease], postgresql_url: str
) -> None:
    """Two banks start on an empty database: one makes the tables while the other one waits for the lock."""
    engine = create_engine(postgresql_url)
    waits = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with ThreadPoolExecutor(1) as other, engine.connect() as first, engine.connect() as watch:
        with first.begin():
            _make(first)
            second = other.submit(claim("second").take)
            end = time.monotonic() + WAIT_S
            while not watch.execute(waits).scalar_one():
                watch.rollback()
                assert time.monotonic() < end
        assert second.result(WAIT_S)
    engine.dispose()
