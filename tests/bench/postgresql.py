"""The bank's ledger on PostgreSQL: orders a second of one bank, beside the least that the database can do.

A server of its own, as Debian packages it, with durable commits. The reference is, in the same run and taking turns, a
bare transaction of one insertion and two updates on the same server. An order of one line is two transactions of the
ledger, one that reserves and one that posts, under locks and with all checks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import sqlalchemy

from ramp.ledger.account import AccountKind
from ramp.model.contents import OrderLine
from ramp.runtime.ledger.store import LedgerStore

ORDERS = 60
UNTIL, START = 10**9, 2 * 10**9


def run() -> list[tuple[str, float, str]]:
    """Measure, where PostgreSQL's programs are; else nothing."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        return []
    with _server(programs[-1].parent) as url, LedgerStore.open(url) as store:
        store.open_account("alice", AccountKind.USER, at=1)
        store.open_account("hector", AccountKind.RESOURCE, at=1)
        store.deposit("d-1", "alice", 200 * ORDERS, at=2)

        def order(number: int) -> None:
            line = OrderLine(f"a-{number}", "hector", 100)
            store.reserve_order(f"o-{number}", "alice", [line], UNTIL, at=10 + number)
            store.countersign(line.agreement_id, at=10 + number, starts_at=START)

        engine = sqlalchemy.create_engine(url)
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text("CREATE TABLE bare (id TEXT PRIMARY KEY, amount BIGINT)"))
            connection.execute(sqlalchemy.text("INSERT INTO bare VALUES ('alice', 0), ('hector', 0)"))
        orders, bare = _take_turns(order, lambda number: _transfer(engine, number))
        engine.dispose()
    return [
        ("postgresql: orders of one line, durable", 1 / orders, "1/s"),
        ("postgresql: ledger transactions, two an order", 2 / orders, "1/s"),
        ("postgresql: bare transactions without any check", 1 / bare, "1/s"),
        ("postgresql: ledger's transaction against bare", orders / 2 / bare, "x"),
    ]


def _take_turns(*works: Callable[[int], None]) -> list[float]:
    """Seconds of each for one, in its best sixth."""
    best = [float("inf")] * len(works)
    lot = ORDERS // 6
    for first in range(0, ORDERS, lot):
        for index, work in enumerate(works):
            began = perf_counter()
            for number in range(first, first + lot):
                work(number)
            best[index] = min(best[index], (perf_counter() - began) / lot)
    return best


def _transfer(engine: sqlalchemy.Engine, number: int) -> None:
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("INSERT INTO bare VALUES (:id, 100)"), {"id": f"t-{number}"})
        for name, by in (("alice", -100), ("hector", 100)):
            connection.execute(
                sqlalchemy.text("UPDATE bare SET amount = amount + :by WHERE id = :id"), {"id": name, "by": by}
            )


@contextmanager
def _server(programs: Path) -> Iterator[str]:
    """URL of a new server on a socket of its own, as the user postgres where this one is root."""
    folder = Path(tempfile.mkdtemp(prefix="ramp-pg-"))  # short, for the socket's path
    as_user: list[str] = []
    if os.geteuid() == 0:
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
    data, quiet = folder / "data", subprocess.DEVNULL
    control = [*as_user, str(programs / "pg_ctl"), "-D", str(data)]
    try:
        make = [
            str(programs / "initdb"),
            "-D",
            str(data),
            "-U",
            "ramp",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
        ]
        subprocess.run([*as_user, *make], check=True, stdout=quiet, cwd=folder)
        options = f"-k {folder} -c listen_addresses=''"
        start = ["-l", str(folder / "log"), "-o", options, "-w", "-t", "60", "start"]
        subprocess.run([*control, *start], check=True, stdout=quiet, cwd=folder)
        try:
            yield f"postgresql+psycopg://ramp@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], stdout=quiet, cwd="/", check=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
