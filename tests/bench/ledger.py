"""The bank's ledger: orders per second, and a statement over 10 000 transfers."""

import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from ramp.ledger import order_rules
from ramp.ledger.entry import AccountKind
from ramp.ledger.interface import Ledger
from ramp.ledger.records import Records
from ramp.model.contents import OrderLine
from ramp.runtime.ledger.store import LedgerStore
from simulation.market.book import Book

ROUNDS = 10
PAYMENTS_A_ROUND = 50
PAYMENTS = ROUNDS * PAYMENTS_A_ROUND
TRANSFERS = 10_000
UNTIL, START = 10**9, 2 * 10**9
EVIDENCE = "x" * 6_000
"""About as long as an agreement with both signatures and certificates."""


def run() -> list[tuple[str, float, str]]:
    """Measure, each against a reference in the same run.

    The reference for payments is the least that a durable payment can do: plain sqlite3, two updates and one insertion
    in a transaction on a file set up alike, with none of the checks; all take turns, as the disk is shared. An order of
    one line is two such transactions: one that reserves, one that posts.
    The reference for the statement asks for each line with its balance by a query of its own.
    """
    book = Book()
    opened(book)
    with tempfile.TemporaryDirectory() as directory, LedgerStore.open(Path(directory) / "ledger.sqlite") as store:
        opened(store)
        bare = _Bare(Path(directory) / "bare.sqlite")
        best = take_turns(
            {
                "store": payer(store),
                "bare": bare.pay,
                "evidence": payer(store, "kelvin", EVIDENCE),
                "book": payer(book),
            },
            PAYMENTS_A_ROUND,
        )
        bare.close()
        _fill(store)
        statement, lines = _statement_seconds(store)
        line_by_line = _line_by_line_seconds(store)
    return [
        ("ledger: orders of one line on SQLite, durable", 1 / best["store"], "1/s"),
        ("ledger: the same with evidence of 6 kB each", 1 / best["evidence"], "1/s"),
        ("ledger: bare sqlite3 payments without any check", 1 / best["bare"], "1/s"),
        ("ledger: order of one line, SQLite against bare", best["bare"] / best["store"], "x"),
        ("ledger: orders of one line in memory", 1 / best["book"], "1/s"),
        (f"ledger: statement of {lines} transfers on SQLite", statement * 1000, "ms"),
        ("ledger: statement, faster than line by line", line_by_line / statement, "x"),
    ]


def opened(ledger: Ledger) -> None:
    """Open the accounts that pay and are paid."""
    ledger.open_account("alice", AccountKind.USER, at=1)
    ledger.open_account("hector", AccountKind.RESOURCE, at=1)
    ledger.open_account("kelvin", AccountKind.RESOURCE, at=1)
    ledger.deposit("d-1", "alice", 200 * TRANSFERS, at=2)


def payer(ledger: Ledger, resource: str = "hector", evidence: str = "") -> Callable[[int], object]:
    """What orders and posts a line of a number."""

    def pay(number: int) -> None:
        line = OrderLine(f"a-{resource}-{number}", resource, 100)
        at = 10 + number
        ledger.reserve_order(f"o-{resource}-{number}", "alice", [line], UNTIL, at=at, evidence=evidence)
        ledger.countersign(line.agreement_id, at=at, starts_at=START, evidence=evidence)

    return pay


def take_turns(payers: dict[str, Callable[[int], object]], payments_a_round: int) -> dict[str, float]:
    """Seconds a payment of each, in its best round."""
    best = dict.fromkeys(payers, float("inf"))
    for first in range(0, ROUNDS * payments_a_round, payments_a_round):
        for name, pay in payers.items():
            started = perf_counter()
            for number in range(first, first + payments_a_round):
                pay(number)
            best[name] = min(best[name], (perf_counter() - started) / payments_a_round)
    return best


def _fill(store: LedgerStore) -> None:
    """Make the rest of the payments, all in one transaction, which takes the disk out of it."""

    def work(records: Records) -> None:
        for number in range(PAYMENTS, TRANSFERS):
            line = OrderLine(f"a-hector-{number}", "hector", 100)
            at = 10 + number
            order_rules.reserve_order(records, f"o-hector-{number}", "alice", [line], UNTIL, at=at)
            order_rules.countersign(records, line.agreement_id, at=at, starts_at=START)

    store.write(work)


def _statement_seconds(store: LedgerStore) -> tuple[float, int]:
    started = perf_counter()
    lines = len(store.statement("hector"))
    return perf_counter() - started, lines


def _line_by_line_seconds(store: LedgerStore) -> float:
    asked = 100
    started = perf_counter()
    for number in range(0, TRANSFERS, TRANSFERS // asked):
        store.statement("hector", since=10 + number, until=10 + number)
    return (perf_counter() - started) / asked * TRANSFERS


class _Bare:
    """Payments by nothing but SQL, on a file of its own."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for statement in (
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=FULL",
            "CREATE TABLE accounts (account_id TEXT PRIMARY KEY, posted INTEGER)",
            "CREATE TABLE transfers (transfer_id TEXT PRIMARY KEY, amount INTEGER)",
            "INSERT INTO accounts VALUES ('alice', 1000000), ('hector', 0)",
        ):
            self._connection.execute(statement)

    def pay(self, number: int) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        execute("INSERT INTO transfers VALUES (?, 100)", (f"a-{number}",))
        execute("UPDATE accounts SET posted = posted - 100 WHERE account_id = 'alice'")
        execute("UPDATE accounts SET posted = posted + 100 WHERE account_id = 'hector'")
        execute("COMMIT")

    def close(self) -> None:
        self._connection.close()
