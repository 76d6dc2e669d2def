"""The contract of `Ledger`, the same on memory, SQLite and PostgreSQL."""

from pathlib import Path

import pytest
from ledger_answers import amounts, end, refusal_code

from ramp.errors import ConfigurationError, LedgerRefusal
from ramp.ledger.entry import ISSUING_ACCOUNT, AccountKind
from ramp.ledger.interface import Ledger
from ramp.model.contents import OrderLine, OrderState, StatementLine, TransferKind
from ramp.model.money import AMOUNT_MAX
from ramp.runtime.ledger.store import LedgerStore


def test_a_new_ledger_has_only_the_empty_issuing_account(ledger: Ledger) -> None:
    (issuer,) = ledger.balances()
    assert (issuer.account.account_id, issuer.account.kind) == (ISSUING_ACCOUNT, AccountKind.MARKET)
    assert (issuer.posted, issuer.reserved) == (0, 0)


def test_opening_is_idempotent_and_keeps_its_terms(ledger: Ledger) -> None:
    first = ledger.open_account("alice", AccountKind.USER, credit_limit=5, at=7)
    assert ledger.open_account("alice", AccountKind.USER, credit_limit=5, at=99) == first
    assert first.opened_at == 7
    for kind, limit in ((AccountKind.RESOURCE, 0), (AccountKind.USER, 6)):
        assert refusal_code(lambda k=kind, n=limit: ledger.open_account("alice", k, credit_limit=n, at=8)) == (
            "duplicate_differs"
        )


def test_deposit_moves_money_from_the_issuing_account_once(funded: Ledger) -> None:
    again = funded.deposit("d-1", "alice", 10_000, at=50, memo="other memo")
    assert (again.entered_at, again.memo, again.kind) == (2, "start", TransferKind.DEPOSIT)
    assert amounts(funded, "alice") == (10_000, 0, 10_000)
    assert funded.balance(ISSUING_ACCOUNT).posted == -10_000
    assert refusal_code(lambda: funded.deposit("d-1", "alice", 10_001, at=3)) == "duplicate_differs"
    assert refusal_code(lambda: funded.deposit("d-1", "bob", 10_000, at=3)) == "duplicate_differs"


def test_unknown_accounts_are_named(funded: Ledger) -> None:
    for call in (
        lambda: funded.balance("nobody"),
        lambda: funded.statement("nobody"),
        lambda: funded.deposit("d-2", "nobody", 1, at=3),
    ):
        with pytest.raises(LedgerRefusal, match="nobody") as caught:
            call()
        assert caught.value.code == "unknown_account"


@pytest.mark.parametrize(
    ("account_id", "amount", "at", "code"),
    [
        (ISSUING_ACCOUNT, 1, 3, "same_account"),
        ("alice", 0, 3, "amount_not_positive"),
        ("alice", -1, 3, "amount_not_positive"),
        ("alice", AMOUNT_MAX + 1, 3, "amount_too_large"),
        ("alice", 1.5, 3, "malformed_value"),
        ("alice", True, 3, "malformed_value"),
        ("hector", 1, 3, "wrong_account"),
        ("", 1, 3, "malformed_value"),
        ("al ice", 1, 3, "malformed_value"),
        ("al\x00ice", 1, 3, "malformed_value"),
        ("alice", 1, -1, "malformed_value"),
        ("alice", 1, 1.0, "malformed_value"),
    ],
)
def test_bad_deposits_are_refused_by_code(funded: Ledger, account_id: str, amount: int, at: int, code: str) -> None:
    assert refusal_code(lambda: funded.deposit("d-2", account_id, amount, at=at)) == code
    assert funded.transfer("d-2", TransferKind.DEPOSIT) is None


def test_a_resource_has_no_overdraft(ledger: Ledger) -> None:
    assert refusal_code(lambda: ledger.open_account("kelvin", AccountKind.RESOURCE, credit_limit=1, at=3)) == (
        "wrong_account"
    )


def reserve(ledger: Ledger, agreement_id: str, resource: str, cost: int, at: int) -> None:
    lines = [OrderLine(agreement_id, resource, cost)]
    assert ledger.reserve_order(f"o-{agreement_id}", "alice", lines, 1_000, at=at).state is OrderState.RESERVED


def pay(ledger: Ledger, agreement_id: str, resource: str, cost: int, at: int) -> None:
    reserve(ledger, agreement_id, resource, cost, at)
    assert ledger.countersign(agreement_id, at=at, starts_at=5_000).state is OrderState.POSTED


def test_a_statement_has_the_balance_after_each_line(funded: Ledger) -> None:
    pay(funded, "a-1", "hector", 2_500, at=10)
    reserve(funded, "a-2", "kelvin", 1_000, at=11)
    end(funded, "a-1", at=20)
    funded.countersign("a-2", at=30, starts_at=5_000)
    reserve(funded, "a-3", "kelvin", 700, at=31)
    whole = funded.statement("alice")
    assert [(line.transfer_id, line.posted_at, line.counterparty, line.amount, line.balance) for line in whole] == [
        ("deposit:d-1", 2, ISSUING_ACCOUNT, 10_000, 10_000),
        ("payment:a-1", 10, "hector", -2_500, 7_500),
        ("refund:a-1", 20, "hector", 2_500, 10_000),
        ("payment:a-2", 30, "kelvin", -1_000, 9_000),
    ]
    part = funded.statement("alice", since=10, until=20)
    assert part == whole[1:3]
    assert part[0] == StatementLine("payment:a-1", 10, "payment", "hector", "a-1", -2_500, 7_500)
    assert funded.statement("alice", since=31) == funded.statement("alice", until=1) == ()
    assert funded.statement("kelvin")[0].amount == 1_000


def test_statement_orders_by_time_and_then_by_posting(funded: Ledger) -> None:
    reserve(funded, "a-1", "hector", 1, at=3)
    pay(funded, "a-2", "hector", 2, at=9)
    funded.countersign("a-1", at=9, starts_at=5_000)
    pay(funded, "a-3", "hector", 3, at=8)  # the clock was set back
    assert [line.agreement_id for line in funded.statement("alice")] == ["d-1", "a-3", "a-2", "a-1"]
    assert [line.balance for line in funded.statement("alice")] == [10_000, 9_997, 9_995, 9_994]


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("mysql://bank@host/ledger", "mysql"),
        ("sqlite://", "lost at exit"),
        ("postgresql://bank@:x/ledger", "URL"),
        ("no-such-directory/ledger.sqlite", "no-such-directory"),
    ],
)
def test_a_wrong_location_is_a_configuration_error(location: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        LedgerStore.open(location)


def test_a_file_that_is_no_database_is_a_configuration_error(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("this is not a ledger, and long enough to be taken for a header of a database " * 10)
    with pytest.raises(ConfigurationError, match=r"notes\.txt"):
        LedgerStore.open(path)
