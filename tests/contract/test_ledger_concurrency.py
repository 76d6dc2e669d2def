"""Several processes at one ledger, processes killed at any statement, and writes against the invariants."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, event, exc, text

import ramp
from ramp.errors import ConfigurationError, LedgerCorrupt
from ramp.ledger.account import AccountKind
from ramp.ledger.transfer import TransferState
from ramp.runtime.ledger_store import LedgerStore

PROLOGUE = """
import json, os, signal, sys
from sqlalchemy import Engine, event
from ramp.errors import LedgerRefusal
from ramp.ledger.account import AccountKind
from ramp.runtime.ledger_store import LedgerStore

url, number = sys.argv[1], int(sys.argv[2])

def attempt(call):
    try:
        return str(call())
    except LedgerRefusal as refusal:
        return refusal.code
"""

PAY_THE_SAME = """
store = LedgerStore.open(url)
print("ready", flush=True)
sys.stdin.readline()
print(json.dumps([attempt(lambda: store.pay(f"a-{i}", "alice", "hector", 7, at=1000 + number)) for i in range(25)]))
"""

SPEND_THE_LAST = """
store = LedgerStore.open(url)
print("ready", flush=True)
sys.stdin.readline()
print(json.dumps([attempt(lambda: store.pay(f"a-{number}", "alice", "hector", 6_000, at=5))]))
"""

PAY_OR_REFUSE = """
store = LedgerStore.open(url)
print("ready", flush=True)
sys.stdin.readline()
def pay(i):
    return attempt(lambda: store.pay(f"a-{i}", "alice", "hector", 7, at=5).state)
def refuse(i):
    return attempt(lambda: store.record_refusal(f"a-{i}", "expired", "too late", at=5).code)
print(json.dumps([(pay if number % 2 else refuse)(i) for i in range(25)]))
"""

USE_THE_SAME_NONCE = """
store = LedgerStore.open(url)
print("ready", flush=True)
sys.stdin.readline()
print(json.dumps([store.use_nonce("alice", f"n-{i}", expires_at=100, now=5) for i in range(25)]))
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
    store.set_pending(f"a-{i}", "alice", "hector", 3, at=10 + i)
    (store.void if i % 3 == 0 else store.post)(f"a-{i}", at=11 + i)
    if i % 3 == 1:
        store.refund(f"a-{i}", 2, at=12 + i)
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
store.pay("a-1", "alice", "hector", 7, at=5)
print("paid", count, flush=True)
"""


COPY_OF_THE_DEPOSIT = """
INSERT INTO transfers
SELECT 'other', debit_account, credit_account, 1, agreement_id, kind, 1, 1, NULL, NULL, '' FROM transfers
"""


def start(script: str, url: str, number: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROLOGUE + script, url, str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(ramp.__file__).parents[1])},
    )


def race(script: str, url: str, processes: int = 3) -> list[list[str]]:
    """Start processes, let them go all at once, and collect what each of them was answered."""
    running = [start(script, url, number) for number in range(processes)]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [json.loads(process.communicate(timeout=100)[0]) for process in running]
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


def test_processes_that_pay_the_same_agreements_debit_each_once(store_url: str) -> None:
    answers = race(PAY_THE_SAME, store_url)
    assert all(answer == answers[0] for answer in answers)
    assert all(transfer.startswith("Transfer(") for transfer in answers[0])
    with LedgerStore.open(store_url) as store:
        assert store.balance("alice").posted == 10_000 - 25 * 7
        assert store.balance("hector").posted == 25 * 7
        assert len(store.statement("hector").lines) == 25
        assert store.audit() == []


def test_processes_that_compete_for_the_last_money_do_not_overdraw(store_url: str) -> None:
    answers = [answer for (answer,) in race(SPEND_THE_LAST, store_url)]
    assert sorted(answer.split("(")[0] for answer in answers) == [
        "Transfer",
        "insufficient_funds",
        "insufficient_funds",
    ]
    with LedgerStore.open(store_url) as store:
        assert store.balance("alice").posted == 4_000
        assert store.audit() == []


def test_an_agreement_is_paid_or_refused_but_never_both(store_url: str) -> None:
    refusing, paying = race(PAY_OR_REFUSE, store_url, processes=2)
    assert set(zip(refusing, paying, strict=True)) <= {("expired", "agreement_refused"), ("already_posted", "posted")}
    with LedgerStore.open(store_url) as store:
        assert store.balance("hector").posted == 7 * paying.count("posted")
        assert store.audit() == []


def test_a_nonce_is_good_for_one_process_only(store_url: str) -> None:
    answers = race(USE_THE_SAME_NONCE, store_url)
    assert [sum(bool(one) for one in of_a_nonce) for of_a_nonce in zip(*answers, strict=True)] == [1] * 25


def test_processes_may_make_the_ledger_at_once(ledger_url: str) -> None:
    answers = race(OPEN_AT_ONCE, ledger_url)
    assert answers[0] == answers[1] == answers[2]
    with LedgerStore.open(ledger_url) as store:
        assert len(store.entries()) == 1


def test_a_killed_writer_leaves_a_sound_ledger(store_url: str) -> None:
    rng = random.Random(20260301)
    first = 0
    for _ in range(6):
        writer = start(WRITE_FOR_EVER, store_url, first)
        assert writer.stdout is not None
        done = [int(writer.stdout.readline()) for _ in range(rng.randint(1, 12))]
        writer.send_signal(signal.SIGKILL)
        done += [int(line) for line in writer.communicate()[0].splitlines()]
        with LedgerStore.open(store_url) as store:
            assert store.audit() == []
            for number in done:  # what was answered is durable
                transfer = store.transfer(f"a-{number}")
                assert transfer is not None
                assert transfer.state is (TransferState.VOIDED if number % 3 == 0 else TransferState.POSTED)
        first = done[-1] + 1  # which may have been begun, but is not answered yet


@pytest.mark.slow
def test_a_payment_killed_at_any_statement_is_made_wholly_or_not_at_all(store_url: str) -> None:
    unpaid = 0
    for number in range(1, 40):
        process = start(DIE_AT_STATEMENT, store_url, number)
        output = process.communicate(timeout=60)[0]
        with LedgerStore.open(store_url) as store:
            assert store.audit() == []
            paid = store.transfer("a-1") is not None
            assert store.balance("alice").posted == (9_993 if paid else 10_000)
        if output:
            assert paid
            break
        assert process.returncode == -signal.SIGKILL
        unpaid += not paid
    assert output
    assert unpaid >= 7  # the three reads and the writes of a payment were all cut off before the commit


@pytest.mark.parametrize(
    "write",
    [
        "UPDATE accounts SET posted = -1 WHERE account_id = 'alice'",
        "UPDATE accounts SET reserved = -1 WHERE account_id = 'alice'",
        "UPDATE accounts SET reserved = 10001 WHERE account_id = 'alice'",
        "UPDATE accounts SET closed_at = 5 WHERE account_id = 'alice'",
        "UPDATE transfers SET voided_at = 5",
        "UPDATE transfers SET debit_account = 'nobody'",
        "UPDATE transfers SET debit_account = credit_account",
        "UPDATE transfers SET amount = 0",
        COPY_OF_THE_DEPOSIT,
        "INSERT INTO entries (action, transfer_id) VALUES ('entered', 'deposit:d-1')",
        "INSERT INTO entries (action, account_id) VALUES ('opened', 'alice')",
        "INSERT INTO entries (action, transfer_id) VALUES ('settled', 'payment:nowhere')",
        "DELETE FROM accounts WHERE account_id = 'alice'",
    ],
)
def test_the_database_itself_refuses_what_is_against_the_invariants(store_url: str, write: str) -> None:
    engine = create_engine(store_url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys=ON"))
    with pytest.raises(exc.IntegrityError), engine.begin() as connection:
        connection.execute(text(write))
    engine.dispose()


@pytest.mark.parametrize(
    ("write", "finding"),
    [
        ("UPDATE accounts SET posted = 20000 WHERE account_id = 'alice'", "alice has 20000 minor units posted"),
        ("UPDATE accounts SET reserved = 5 WHERE account_id = 'alice'", "alice has 5 minor units reserved"),
        ("UPDATE transfers SET amount = 1", "alice has 10000 minor units posted, its transfers give 1"),
        ("DELETE FROM entries WHERE transfer_id IS NOT NULL", "its transfers give 0"),
        ("UPDATE accounts SET kind = 'resource', posted = posted + 1 WHERE account_id = 'alice'", "sum to 1"),
    ],
)
def test_the_audit_finds_what_was_changed_behind_the_ledger(store_url: str, write: str, finding: str) -> None:
    engine = create_engine(store_url)
    with engine.begin() as connection:
        connection.execute(text(write))
    engine.dispose()
    with LedgerStore.open(store_url) as store:
        assert any(finding in line for line in store.audit())


def test_a_write_against_a_constraint_is_not_made_and_says_so(store_url: str) -> None:
    with LedgerStore.open(store_url) as store:
        store.set_pending("a-1", "alice", "hector", 7, at=5)
        engine = create_engine(store_url)
        with engine.begin() as connection:
            connection.execute(text("UPDATE accounts SET reserved = 0 WHERE account_id = 'alice'"))
        engine.dispose()
        with pytest.raises(LedgerCorrupt, match="constraint"):
            store.void("a-1", at=6)
        assert store.transfer("a-1").state is TransferState.PENDING


def test_a_ledger_of_another_version_is_not_touched(store_url: str) -> None:
    engine = create_engine(store_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE ledger_version SET version = 99"))
    engine.dispose()
    with pytest.raises(ConfigurationError, match="99"):
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
