"""`ramp bank overview` and `ramp bank audit`: limits and postings as people read them, and wrong balances."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ramp.cli.verbs.accounts import AGREEMENT, reference
from ramp.client.results import account_of
from ramp.ledger.entry import ISSUE_LIMIT, ISSUER, AccountKind
from ramp.model.contents import AccountLine, AccountStatement, MarketOverview, StatementLine, TradeLine, TransferKind
from ramp.model.instant import from_iso
from ramp.runtime.configuration_changes.overlay import new_overlay, save_overlay
from ramp.runtime.ledger.store import LedgerStore
from ramp.runtime.state_folder import StateFolder
from tests.tiny_market import tiny_market

NOW = from_iso("2026-12-01T10:00:00Z")
OPENING = TradeLine(
    "transfer-1", NOW, TransferKind.DEPOSIT, "market", "alice@localhost", "opening-alice@localhost", "", 500
)
PAYMENT = TradeLine(
    "transfer-2",
    NOW,
    TransferKind.PAYMENT,
    "alice@localhost",
    "ricc@localhost",
    "agreement-5f81c22e01",
    "order-77",
    200,
)
OVERVIEW = MarketOverview(
    "query-1",
    NOW,
    (
        AccountLine(ISSUER.account_id, ISSUER.kind, -500, 0, ISSUE_LIMIT),
        AccountLine("alice@localhost", AccountKind.USER, 300, 0, 70_000),
    ),
    (OPENING, PAYMENT),
)
LINES = (
    StatementLine("transfer-1", NOW, TransferKind.DEPOSIT, "market", "opening-alice@localhost", 500, 500),
    StatementLine("transfer-2", NOW, TransferKind.PAYMENT, "ricc@localhost", "agreement-5f81c22e01", -200, 300),
)


@pytest.fixture
def _asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramp.cli.verbs.accounts.ask_keeper", lambda state, dialogue: OVERVIEW)
    monkeypatch.setattr("ramp.cli.verbs.accounts.running", lambda state: SimpleNamespace(domain="localhost"))


@pytest.mark.usefixtures("_asked")
def test_no_limit_is_shown_where_none_is_meant(ramp: Callable[..., Any]) -> None:
    """The issuing account's is all money that can exist: a number of 16 digits tells nobody that."""
    lines = {line.split()[0]: line for line in ramp("bank", "overview").out.splitlines()[2:4]}
    assert lines["market"].endswith("no limit")
    assert lines["alice"].endswith("700.00")
    accounts = json.loads(ramp("bank", "overview", "--json").out)["accounts"]
    assert [each["overdraft"] for each in accounts] == [None, "700.00"]


@pytest.mark.usefixtures("_asked")
def test_a_deposit_is_told_by_its_own_id_and_is_no_agreement(ramp: Callable[..., Any]) -> None:
    shown = ramp("bank", "overview").out.splitlines()
    assert [line.split()[-1] for line in shown if line.startswith("2026-12")] == ["opening-alice", "5f81c2"]
    trades = json.loads(ramp("bank", "overview", "--json").out)["trades"]
    ids = [(each["agreement_id"], each["deposit_id"]) for each in trades]
    assert ids == [(None, "opening-alice@localhost"), ("agreement-5f81c22e01", None)]


def test_a_statement_tells_deposits_and_agreements_apart_too() -> None:
    assert list(map(reference(LINES, "localhost").words, LINES)) == ["opening-alice", "5f81c2"]
    assert list(map(reference(LINES, "").words, LINES)) == ["opening-alice@localhost", "5f81c2"]
    assert list(map(AGREEMENT.plain, LINES)) == [None, "agreement-5f81c22e01"]
    account = account_of(AccountStatement("nonce", "alice@localhost", 300, 0, 0, NOW, LINES))
    assert [each.agreement_id for each in account.postings] == ["", "agreement-5f81c22e01"]
    assert [each.deposit_id for each in account.postings] == ["opening-alice@localhost", ""]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder whose bank has opened one account."""
    with LedgerStore.open(tmp_path / "ledger.sqlite") as store:
        store.open_account("alice", AccountKind.USER, at=1)
        store.deposit("d-1", "alice", 5_000, at=2)
    return tmp_path


def change(state: Path, statement: str) -> None:
    connection = sqlite3.connect(state / "ledger.sqlite")
    with connection:
        connection.execute(statement)
    connection.close()


def test_books_that_agree(state: Path, ramp: Callable[..., Any]) -> None:
    assert ramp("bank", "audit", "--state-dir", str(state)).out == "2 accounts, 0 findings\n"


def test_a_balance_changed_by_hand_is_told_with_its_account(state: Path, ramp: Callable[..., Any]) -> None:
    change(state, "UPDATE accounts SET posted = 6000 WHERE account_id = 'alice'")
    assert json.loads(ramp("bank", "audit", "--state-dir", str(state), "--json", code=1).out) == {
        "accounts": 2,
        "findings": [
            "account alice has 6000 minor units posted, its transfers give 5000",
            "all balances sum to 1000 minor units instead of zero",
        ],
    }


def test_an_entry_of_an_unknown_action_is_a_finding(state: Path, ramp: Callable[..., Any]) -> None:
    change(state, "UPDATE entries SET action = 'eaten' WHERE transfer_id IS NOT NULL")
    told = ramp("bank", "audit", "--state-dir", str(state), code=1).out
    assert "deposit:d-1 (5000 minor units from market to alice) was never entered" in told
    assert "(eaten) names nothing in the ledger" in told


def test_the_ledger_that_the_configuration_names_is_read(tmp_path: Path, ramp: Callable[..., Any]) -> None:
    """Also of a market that is down."""
    named = f"sqlite:///{tmp_path / 'elsewhere.sqlite'}"
    with LedgerStore.open(named) as store:
        store.open_account("alice", AccountKind.USER, at=1)
    text = f'[market]\nledger = "{named}"\n' + tiny_market({"alice": 10})
    state = StateFolder(tmp_path / "state")
    state.prepare()
    save_overlay(state, new_overlay(text, tmp_path / "market.toml"))
    assert ramp("bank", "audit", "--state-dir", str(state.path)).out == "2 accounts, 0 findings\n"


def test_a_folder_without_a_ledger_is_refused(tmp_path: Path, ramp: Callable[..., Any]) -> None:
    assert "ledger.sqlite" in ramp("bank", "audit", "--state-dir", str(tmp_path), code=2).err
