"""Several processes at one ledger, processes killed at any statement, and writes against the invariants."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, event, exc, text

from ramp.errors import ConfigurationError, LedgerCorrupt, WrongVersion
from ramp.ledger.entry import AccountKind, Order, TransferState
from ramp.model.contents import OrderLine, OrderState
from ramp.runtime.ledger import schema as ledger_schema
from ramp.runtime.ledger.store import LedgerStore

PROLOGUE = """
import json, os, signal, sys
from sqlalchemy import Engine, event
from ramp.errors import LedgerRefusal
from ramp.ledger.entry import AccountKind, Grounds
from ramp.model.agreement import TERMINAL, ContractChange
from ramp.model.contents import OrderLine
from ramp.runtime.ledger.store import LedgerStore

url, number = sys.argv[1], int(sys.argv[2])

def attempt(call):
    try:
        return str(call())
    except LedgerRefusal as refusal:
        return refusal.code

def end_by(user, resource, agreement_id):
    return ContractChange(agreement_id, TERMINAL, "", user, resource, "bank", 0)
"""

GO = """
store = LedgerStore.open(url)
print("ready", flush=True)
sys.stdin.readline()
def reserve(order_id, cost, *agreements):
    return store.reserve_order(order_id, "alice", [OrderLine(one, "hector", cost) for one in agreements], 1_000, at=10)
"""

RESERVE_THE_SAME = """
print(json.dumps([attempt(lambda: reserve(f"o-{i}", 7, f"a-{i}", f"b-{i}").total) for i in range(25)]))
"""

SPEND_THE_LAST = """
print(json.dumps([reserve(f"o-{number}-{i}", 500, f"a-{number}-{i}").code for i in range(9)]))
"""

COUNTERSIGN_ALL_LINES = """
print(json.dumps([store.countersign(f"a-{i}-{number}", at=20, starts_at=5_000).state for i in range(25)]))
"""

POST_OR_VOID = """
def post(i):
    return store.countersign(f"a-{i}", at=20, starts_at=5_000).state
def void(i):
    return store.void_order(f"o-{i}", "alice", 1_000, at=20, code="unwanted", reason="").state
print(json.dumps([(post if number else void)(i) for i in range(25)]))
"""

FAIL_OR_REFUND = """
def fail(i):
    return store.post_change(end_by("alice", "hector", f"a-{i}"), Grounds.SELLER, at=30).amount
def refund(i):
    return store.post_change(end_by("", "", f"a-{i}"), Grounds.BOTH, at=30, evidence="<cancellation/>").amount
print(json.dumps([(refund if number else fail)(i) for i in range(25)]))
"""

OPEN_AT_ONCE = """
print("ready", flush=True)
sys.stdin.readline()
store = LedgerStore.open(url)
print(json.dumps([str(store.balances())]))
"""

WRITE_FOR_EVER = """
store = LedgerStore.open(url)
i = number
while True:
    lines = [OrderLine(f"{one}-{i}", "hector", 3) for one in "abc"]
    store.reserve_order(f"o-{i}", "alice", lines, 10**6, at=10 + i, evidence="<order/>")
    for line in lines[: 2 if i % 3 == 0 else 3]:
        store.countersign(line.agreement_id, at=11 + i, starts_at=10**6, evidence="<agreement/>")
    if i % 3 == 0:
        store.void_order(f"o-{i}", "alice", 10**6, at=12 + i, code="unwanted", reason="", evidence="<void/>")
    if i % 3 == 1:
        store.post_change(end_by("", "", f"a-{i}"), Grounds.BOTH, at=12 + i, evidence="<cancellation/>")
    print(i, flush=True)
    i += 1
"""

DIE_AT_STATEMENT = """
store = LedgerStore.open(url)
count = 0
def die(*args):
    global count
    count += 1
    if count == number:
        os.kill(os.getpid(), signal.SIGKILL)
event.listen(Engine, "before_cursor_execute", die)
event.listen(Engine, "commit", die)
if os.environ["RAMP_TEST_STEP"] == "reserve":
    lines = [OrderLine(one, "hector", 7) for one in ("a-1", "a-2")]
    store.reserve_order("o-1", "alice", lines, 1_000, at=5, evidence="<order/>")
else:
    store.countersign("a-2", at=6, starts_at=5_000, evidence="<agreement/>")
print("done", count, flush=True)
"""


COPY_OF_THE_DEPOSIT = """
INSERT INTO transfers
SELECT 'other', debit_account, credit_account, 1, agreement_id, kind, 1, 1, NULL, '', NULL FROM transfers
"""


def start(script: str, url: str, number: int, step: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROLOGUE + script, url, str(number)]
    environment = {**os.environ, "RAMP_TEST_STEP": step}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def rest_of(process: subprocess.Popen[str]) -> str:
    """Close a script's input, and wait for its end; returns what it has said since."""
    with process:
        process.stdin.close()
        return process.stdout.read()


def race(script: str, url: str, processes: int = 3, *, ready: str = GO) -> list[list[str]]:
    """Start processes, let them go all at once when they are ready, and collect what each of them was answered."""
    running = [start(ready + script, url, number) for number in range(processes)]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [json.loads(rest_of(process)) for process in running]
    assert [process.returncode for process in running] == [0] * processes
    return answers


@pytest.fixture
def store_url(ledger_url: str) -> str:
    """A ledger where alice has 100.00 credits and hector sells; its audit is clean, before and after."""
    with LedgerStore.open(ledger_url) as store:
        store.open_account("alice", AccountKind.USER, at=1)
        store.open_account("hector", AccountKind.RESOURCE, at=1)
        store.deposit("d-1", "alice", 10_000, at=2)
    return ledger_url


def reserve(store: LedgerStore, order_id: str, *agreements: str, at: int = 10) -> Order:
    lines = [OrderLine(agreement_id, "hector", 7) for agreement_id in agreements]
    return store.reserve_order(order_id, "alice", lines, 1_000, at=at)


def test_processes_that_order_the_same_reserve_it_once(store_url: str) -> None:
    answers = race(RESERVE_THE_SAME, store_url)
    assert answers == [["14"] * 25] * 3
    with LedgerStore.open(store_url) as store:
        assert (store.balance("alice").reserved, len(store.open_orders())) == (25 * 14, 25)
        assert store.audit() == []


def test_processes_that_compete_for_the_last_money_do_not_overdraw(store_url: str) -> None:
    codes = [code for answer in race(SPEND_THE_LAST, store_url) for code in answer]
    assert (codes.count(""), codes.count("insufficient_funds")) == (20, 7)  # 100.00 credits bear 20 times 5.00
    with LedgerStore.open(store_url) as store:
        assert store.balance("alice").available == 0
        assert store.audit() == []


def test_the_last_countersignature_posts_whoever_brings_it(store_url: str) -> None:
    with LedgerStore.open(store_url) as store:
        for i in range(25):
            reserve(store, f"o-{i}", *(f"a-{i}-{number}" for number in range(3)))
    answers = race(COUNTERSIGN_ALL_LINES, store_url)
    for states in zip(*answers, strict=True):
        assert sorted(states) == ["posted", "reserved", "reserved"]
    with LedgerStore.open(store_url) as store:
        assert store.balance("hector").posted == 25 * 21
        assert store.audit() == []


def test_an_order_is_posted_or_voided_but_never_both(store_url: str) -> None:
    with LedgerStore.open(store_url) as store:
        for i in range(25):
            reserve(store, f"o-{i}", f"a-{i}")
    voiding, posting = race(POST_OR_VOID, store_url, processes=2)
    assert voiding == posting
    assert set(posting) <= {"posted", "voided"}
    with LedgerStore.open(store_url) as store:
        assert store.balance("hector").posted == 7 * posting.count("posted")
        assert (store.balance("alice").reserved, store.audit()) == (0, [])


def test_a_payment_is_given_back_once_whoever_asks(store_url: str) -> None:
    with LedgerStore.open(store_url) as store:
        for i in range(25):
            reserve(store, f"o-{i}", f"a-{i}")
            store.countersign(f"a-{i}", at=20, starts_at=5_000)
    failing, refunding, again = race(FAIL_OR_REFUND, store_url)
    assert failing == refunding == again
    assert all(amount < 0 for amount in failing)
    with LedgerStore.open(store_url) as store:
        assert store.balance("hector").posted == 0
        assert all(len(store.evidence(f"a-{i}")) <= 1 for i in range(25))
        assert store.audit() == []


def test_processes_may_make_the_ledger_at_once(ledger_url: str) -> None:
    answers = race(OPEN_AT_ONCE, ledger_url, ready="")
    assert answers[0] == answers[1] == answers[2]
    with LedgerStore.open(ledger_url) as store:
        assert len(store.snapshot().entries) == 1


def test_a_ledger_that_another_process_begins_to_write_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(ledger_schema.time, "sleep", lambda _: other.execute("ROLLBACK"))
    with LedgerStore.open(tmp_path / "ledger.sqlite") as store:
        assert store.audit() == []
    other.close()


def test_a_killed_writer_leaves_a_sound_ledger(store_url: str) -> None:
    rng = random.Random(20260301)
    first = 0
    for _ in range(6):
        writer = start(WRITE_FOR_EVER, store_url, first)
        done = [int(writer.stdout.readline()) for _ in range(rng.randint(1, 12))]
        writer.kill()
        done += [int(line) for line in rest_of(writer).splitlines()]
        with LedgerStore.open(store_url) as store:
            assert store.audit() == []
            for number in done:  # what was answered is durable
                transfer = store.transfer(f"a-{number}")
                assert transfer is not None
                assert transfer.state is (TransferState.VOIDED if number % 3 == 0 else TransferState.POSTED)
                assert [one.kind for one in store.evidence(f"o-{number}")] == ["order", "void"][: 2 - (number % 3 > 0)]
        first = done[-1] + 1  # which may have been begun, but is not answered yet


@pytest.mark.slow
@pytest.mark.parametrize("step", ["reserve", "post"])
def test_an_order_killed_at_any_statement_is_entered_wholly_or_not_at_all(store_url: str, step: str) -> None:
    if step == "post":
        with LedgerStore.open(store_url) as store:
            reserve(store, "o-1", "a-1", "a-2", at=5)
            store.countersign("a-1", at=6, starts_at=5_000)
    undone = 0
    for number in range(1, 40):
        process = start(DIE_AT_STATEMENT, store_url, number, step)
        output = rest_of(process)
        with LedgerStore.open(store_url) as store:
            assert store.audit() == []
            order = store.order("o-1")
            done = order is not None and (step == "reserve" or order.state is OrderState.POSTED)
            balance = store.balance("alice")
            if step == "reserve":
                assert (balance.reserved, len(store.evidence("o-1"))) == ((14, 1) if done else (0, 0))
            else:
                right = (9_986, 0, 1) if done else (10_000, 14, 0)
                assert (balance.posted, balance.reserved, len(store.evidence("a-2"))) == right
        if output:
            assert done
            break
        assert process.returncode == -signal.SIGKILL
        undone += not done
    assert output
    assert undone >= 8  # the reads and the writes to five tables or more were all cut off before the commit


@pytest.mark.parametrize(
    "write",
    [
        "UPDATE accounts SET posted = -1 WHERE account_id = 'alice'",
        "UPDATE accounts SET reserved = -1 WHERE account_id = 'alice'",
        "UPDATE accounts SET reserved = 10001 WHERE account_id = 'alice'",
        "UPDATE transfers SET voided_at = 5",
        "UPDATE transfers SET debit_account = 'nobody'",
        "UPDATE transfers SET debit_account = credit_account",
        "UPDATE transfers SET amount = 0",
        COPY_OF_THE_DEPOSIT,
        "INSERT INTO entries (action, transfer_id) VALUES ('entered', 'deposit:d-1')",
        "INSERT INTO entries (action, account_id) VALUES ('opened', 'alice')",
        "INSERT INTO entries (action, transfer_id) VALUES ('settled', 'payment:nowhere')",
        "UPDATE transfers SET order_id = 'nowhere'",
        "INSERT INTO entries (action, order_id) VALUES ('settled', 'nowhere')",
        "INSERT INTO entries (action, order_id) VALUES ('entered', 'o-1')",
        "UPDATE orders SET state = 'posted'",
        "UPDATE orders SET state = 'lost', settled_at = 5",
        "UPDATE orders SET state = 'posted', settled_at = 1000",
        "UPDATE orders SET settled_at = 5",
        "UPDATE order_lines SET cost = 0",
        "UPDATE order_lines SET countersigned_at = 5",
        "DELETE FROM orders",
        "DELETE FROM accounts WHERE account_id = 'alice'",
    ],
)
def test_the_database_itself_refuses_what_is_against_the_invariants(store_url: str, write: str) -> None:
    with LedgerStore.open(store_url) as store:
        reserve(store, "o-1", "a-1")
    engine = create_engine(store_url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys=ON"))
    with pytest.raises(exc.IntegrityError), engine.begin() as connection:
        connection.execute(text(write))
    engine.dispose()


def test_a_write_against_a_constraint_is_not_made_and_says_so(store_url: str) -> None:
    with LedgerStore.open(store_url) as store:
        reserve(store, "o-1", "a-1")
        engine = create_engine(store_url)
        with engine.begin() as connection:
            connection.execute(text("UPDATE accounts SET reserved = 0 WHERE account_id = 'alice'"))
        engine.dispose()
        with pytest.raises(LedgerCorrupt, match="constraint"):
            store.void_order("o-1", "alice", 1_000, at=11, code="unwanted", reason="", evidence="<void/>")
        assert store.transfer("a-1").state is TransferState.PENDING
        assert (store.order("o-1").state, store.evidence("o-1")) == (OrderState.RESERVED, ())


def test_a_ledger_of_another_version_is_not_touched(store_url: str) -> None:
    engine = create_engine(store_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE ledger_version SET version = 99"))
    engine.dispose()
    with pytest.raises(WrongVersion, match="wrong version of this ledger: got 99, expected 1"):
        LedgerStore.open(store_url)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigurationError, match="psycopg"):
        LedgerStore.open("postgresql://bank:secret@localhost/ledger")


def test_an_unreachable_server_is_named_without_its_password() -> None:
    with pytest.raises(ConfigurationError) as caught:
        LedgerStore.open("postgresql://bank:secret@localhost:1/ledger")
    assert "localhost:1/ledger" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.postgresql
def test_a_lost_connection_is_made_anew(postgresql_url: str) -> None:
    with LedgerStore.open(postgresql_url) as store:
        store.open_account("alice", AccountKind.USER, at=1)
        engine = create_engine(postgresql_url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()"
                )
            )
        engine.dispose()
        assert store.deposit("d-1", "alice", 5, at=2).amount == 5
        assert store.balance("alice").posted == 5
