"""Databases for the ledger's contract suite: SQLite, and PostgreSQL from RAMP_TEST_POSTGRESQL or a private cluster."""

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from ramp.ledger.entry import AccountKind
from ramp.ledger.interface import Ledger
from ramp.model.contents import OrderLine
from ramp.runtime.ledger.store import LedgerStore
from simulation.market.book import Book

POSTGRESQL = (pytest.mark.postgresql, pytest.mark.slow)
"""A server of its own takes its time; what it shares with SQLite is tested with that all the time."""


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """URL of a PostgreSQL database where schemas may be made."""
    if given := os.environ.get("RAMP_TEST_POSTGRESQL"):
        yield given
        return
    try:
        with private_server(durable=False) as url:
            yield url
    except NoServer as error:
        pytest.skip(f"RAMP_TEST_POSTGRESQL is not set and {error}")


class NoServer(Exception):
    """No PostgreSQL server can be started here."""


@contextmanager
def private_server(*, durable: bool) -> Iterator[str]:
    """URL of a new server on a socket of its own, as the user postgres where this one is root.

    Raises:
        NoServer: its programs are not there, or fail.
    """
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        raise NoServer("no initdb is found under /usr/lib/postgresql")
    as_user: list[str] = []
    # The server refuses to run as root, and its sockets' path must be short.
    directory = Path(tempfile.mkdtemp(prefix="ramp-pg-"))
    try:
        if os.geteuid() == 0:
            if shutil.which("runuser") is None:
                raise NoServer("PostgreSQL cannot run as root and runuser is not found")
            as_user = ["runuser", "-u", "postgres", "--"]
            shutil.chown(directory, "postgres")
        data = directory / "data"
        initdb, pg_ctl = (str(programs[-1].with_name(name)) for name in ("initdb", "pg_ctl"))
        make = [initdb, "-D", str(data), "-U", "ramp", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        options = f"-k {directory} -c listen_addresses=''{'' if durable else ' -c fsync=off'}"
        start = [pg_ctl, "-D", str(data), "-l", str(directory / "log"), "-o", options, "-w", "-t", "60", "start"]
        for command in (make, start):
            done = subprocess.run(
                [*as_user, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=directory
            )
            if done.returncode != 0:
                raise NoServer(f"{command[0]} failed: {done.stderr.decode(errors='replace').strip()[-300:]}")
        try:
            yield f"postgresql+psycopg://ramp@/postgres?host={directory}"
        finally:
            subprocess.run(
                [*as_user, pg_ctl, "-D", str(data), "-m", "immediate", "stop"],
                stdout=subprocess.DEVNULL,
                cwd="/",
                check=False,
            )
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """URL of an empty schema of its own, which is dropped afterwards."""
    with own_schema(postgresql_server) as url:
        yield url


@contextmanager
def own_schema(postgresql_server: str) -> Iterator[str]:
    """URL of an empty schema at a server, which is dropped afterwards."""
    schema = f"ramp_{uuid.uuid4().hex}"
    url = make_url(postgresql_server)
    if url.drivername in {"postgres", "postgresql"}:
        url = url.set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    own = url.update_query_dict({"options": f"-csearch_path={schema}", "application_name": schema})
    yield own.render_as_string(hide_password=False)
    with engine.connect() as connection:
        connection.execute(text(f"DROP SCHEMA {schema} CASCADE"))
    engine.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=POSTGRESQL)])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty database, on SQLite and on PostgreSQL."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgresql_url"))
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger's file with its tables and nothing in them: to copy one is quicker than to make one for every test."""
    path = tmp_path_factory.mktemp("empty") / "ledger.sqlite"
    LedgerStore.open(path).close()
    return path


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=POSTGRESQL)])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Ledger]]:
    """A function that opens one and the same ledger, anew at each call where it is kept in a database."""
    if request.param == "memory":
        book = Book()
        yield lambda: book
        return
    location = tmp_path / "ledger.sqlite"
    if request.param == "postgresql":
        location = request.getfixturevalue("postgresql_url")
    else:
        shutil.copyfile(request.getfixturevalue("empty_sqlite"), location)
    stores: list[LedgerStore] = []

    def open_store() -> Ledger:
        stores.append(LedgerStore.open(location))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


@pytest.fixture
def ledger(reopen: Callable[[], Ledger]) -> Iterator[Ledger]:
    """An empty ledger of each kind; whatever a test did to it, its audit is clean afterwards."""
    empty = reopen()
    yield empty
    assert empty.audit() == []


@pytest.fixture
def paid(ledger: Ledger) -> Ledger:
    """Alice, who had 100.00 credits, has paid 25.00 to hector; he has spent nothing of it."""
    ledger.open_account("alice", AccountKind.USER, at=1)
    ledger.open_account("hector", AccountKind.RESOURCE, at=1)
    ledger.deposit("d-1", "alice", 10_000, at=2)
    ledger.reserve_order("o-1", "alice", [OrderLine("a-1", "hector", 2_500)], 100, at=10)
    ledger.countersign("a-1", at=20, starts_at=5_000)
    return ledger


@pytest.fixture
def funded(ledger: Ledger) -> Ledger:
    """Alice has 100.00 credits, bob nothing but an overdraft of 10.00, hector and kelvin sell."""
    ledger.open_account("alice", AccountKind.USER, at=1)
    ledger.open_account("bob", AccountKind.USER, credit_limit=1_000, at=1)
    ledger.open_account("hector", AccountKind.RESOURCE, at=1)
    ledger.open_account("kelvin", AccountKind.RESOURCE, at=1)
    ledger.deposit("d-1", "alice", 10_000, at=2, memo="start")
    return ledger
