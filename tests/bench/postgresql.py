"""The bank's ledger on PostgreSQL: orders a second of one bank, beside the least that the database can do.

A server of its own, as Debian packages it, with durable commits. The reference is, in the same run and taking turns, a
bare transaction of one insertion and two updates on the same server. An order of one line is two transactions of the
ledger, one that reserves and one that posts, under locks and with all checks.
"""

import sqlalchemy

from ramp.runtime.ledger.store import LedgerStore
from tests.bench.ledger import opened, payer, take_turns
from tests.contract.conftest import NoServer, private_server

ORDERS_A_ROUND = 6


def run() -> list[tuple[str, float, str]]:
    """Measure, where PostgreSQL's programs are; else nothing."""
    try:
        with private_server(durable=True) as url:
            return _measure(url)
    except NoServer:
        return []


def _measure(url: str) -> list[tuple[str, float, str]]:
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE bare (id TEXT PRIMARY KEY, amount BIGINT)"))
        connection.execute(sqlalchemy.text("INSERT INTO bare VALUES ('alice', 0), ('hector', 0)"))
    with LedgerStore.open(url) as store:
        opened(store)
        works = {"orders": payer(store), "bare": lambda number: _transfer(engine, number)}
        best = take_turns(works, ORDERS_A_ROUND)
    engine.dispose()
    orders, bare = best["orders"], best["bare"]
    return [
        ("postgresql: orders of one line, durable", 1 / orders, "1/s"),
        ("postgresql: ledger transactions, two an order", 2 / orders, "1/s"),
        ("postgresql: bare transactions without any check", 1 / bare, "1/s"),
        ("postgresql: ledger's transaction against bare", orders / 2 / bare, "x"),
    ]


def _transfer(engine: sqlalchemy.Engine, number: int) -> None:
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("INSERT INTO bare VALUES (:id, 100)"), {"id": f"t-{number}"})
        for name, by in (("alice", -100), ("hector", 100)):
            connection.execute(
                sqlalchemy.text("UPDATE bare SET amount = amount + :by WHERE id = :id"), {"id": name, "by": by}
            )
