"""`ramp bank audit`: every row of the ledger, whether or not a market is up."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from ramp.cli.main import main
from ramp.ledger.account import AccountKind
from ramp.runtime.ledger.store import LedgerStore


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


def test_books_that_agree(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bank", "audit", "--state-dir", str(state)]) == 0
    assert capsys.readouterr().out == "2 accounts, 0 findings\n"


def test_a_balance_changed_by_hand_is_told_with_its_account(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(state, "UPDATE accounts SET posted = 6000 WHERE account_id = 'alice'")
    assert main(["bank", "audit", "--state-dir", str(state), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "accounts": 2,
        "findings": [
            "account alice has 6000 minor units posted, its transfers give 5000",
            "all balances sum to 1000 minor units instead of zero",
        ],
    }


def test_a_row_that_cannot_be_read_is_a_finding(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(state, "UPDATE entries SET action = 'eaten' WHERE transfer_id IS NOT NULL")
    assert main(["bank", "audit", "--state-dir", str(state)]) == 1
    told = capsys.readouterr().out
    assert "deposit:d-1 (5000 minor units from market to alice) contradicts itself or its entries" in told
    assert "cannot read a row: 'eaten' is not a valid Action" in told


def test_a_folder_without_a_ledger_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bank", "audit", "--state-dir", str(tmp_path)]) == 2
    assert "ledger.sqlite" in capsys.readouterr().err
