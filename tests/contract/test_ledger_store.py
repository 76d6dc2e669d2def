"""The contract of `Ledger`, the same on memory, SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ramp.errors import ConfigurationError, LedgerRefusal
from ramp.ledger.account import AMOUNT_MAX, ISSUE_LIMIT, ISSUING_ACCOUNT, AccountKind, Balance
from ramp.ledger.interface import Ledger
from ramp.ledger.text import ledger_text, parse_ledger
from ramp.ledger.transfer import Transfer, TransferKind, TransferState
from ramp.model.contents import StatementLine
from ramp.runtime.ledger_store import LedgerStore

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


@pytest.fixture
def funded(ledger: Ledger) -> Ledger:
    """Alice has 100.00 credits, bob nothing but an overdraft of 10.00, hector and kelvin sell."""
    ledger.open_account("alice", AccountKind.USER, at=1)
    ledger.open_account("bob", AccountKind.USER, credit_limit=1_000, at=1)
    ledger.open_account("hector", AccountKind.RESOURCE, at=1)
    ledger.open_account("kelvin", AccountKind.RESOURCE, at=1)
    ledger.deposit("d-1", "alice", 10_000, at=2, memo="start")
    return ledger


def refusal_code(call: Callable[[], object]) -> str:
    with pytest.raises(LedgerRefusal) as caught:
        call()
    return caught.value.code


def amounts(ledger: Ledger, account_id: str) -> tuple[int, int, int]:
    balance = ledger.balance(account_id)
    return balance.posted, balance.reserved, balance.available


def test_a_new_ledger_has_only_the_empty_issuing_account(ledger: Ledger) -> None:
    (issuer,) = ledger.balances()
    assert (issuer.account.account_id, issuer.account.kind) == (ISSUING_ACCOUNT, AccountKind.MARKET)
    assert (issuer.posted, issuer.reserved) == (0, 0)


def test_opening_is_idempotent_and_keeps_its_terms(ledger: Ledger) -> None:
    first = ledger.open_account("alice", AccountKind.USER, credit_limit=5, at=7)
    assert ledger.open_account("alice", AccountKind.USER, credit_limit=5, at=99) == first
    assert first.opened_at == 7
    for kind, limit in ((AccountKind.RESOURCE, 5), (AccountKind.USER, 6)):
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


def test_payment_debits_and_credits_once_whatever_is_repeated(funded: Ledger) -> None:
    paid = funded.pay("a-1", "alice", "hector", 2_500, at=10, memo="two units")
    assert paid == Transfer(
        "payment:a-1", "alice", "hector", 2_500, "a-1", TransferKind.PAYMENT, 10, posted_at=10, memo="two units"
    )
    assert funded.pay("a-1", "alice", "hector", 2_500, at=11) == paid
    assert funded.transfer("a-1") == paid
    assert amounts(funded, "alice") == (7_500, 0, 7_500)
    assert amounts(funded, "hector") == (2_500, 0, 2_500)


@pytest.mark.parametrize("terms", [("bob", "hector", 5), ("alice", "kelvin", 5), ("alice", "hector", 6)])
def test_the_same_agreement_on_other_terms_is_refused(funded: Ledger, terms: tuple[str, str, int]) -> None:
    funded.pay("a-1", "alice", "hector", 5, at=10)
    assert refusal_code(lambda: funded.pay("a-1", *terms, at=11)) == "duplicate_differs"
    assert refusal_code(lambda: funded.set_pending("a-1", *terms, at=11)) == "duplicate_differs"
    assert amounts(funded, "alice")[0] == 9_995


def test_overdraft_is_usable_to_the_last_minor_unit(funded: Ledger) -> None:
    assert refusal_code(lambda: funded.pay("a-1", "bob", "hector", 1_001, at=10)) == "insufficient_funds"
    assert funded.transfer("a-1") is None
    funded.pay("a-1", "bob", "hector", 1_000, at=11)
    assert amounts(funded, "bob") == (-1_000, 0, 0)
    assert refusal_code(lambda: funded.pay("a-2", "bob", "hector", 1, at=12)) == "insufficient_funds"


def test_escrow_reserves_then_posts(funded: Ledger) -> None:
    held = funded.set_pending("a-1", "alice", "hector", 9_000, at=10)
    assert held.state is TransferState.PENDING
    assert amounts(funded, "alice") == (10_000, 9_000, 1_000)
    assert amounts(funded, "hector") == (0, 0, 0)
    assert funded.pending() == funded.pending("alice") == funded.pending("hector") == (held,)
    assert funded.pending("kelvin") == ()
    assert refusal_code(lambda: funded.pay("a-2", "alice", "kelvin", 1_001, at=11)) == "insufficient_funds"
    posted = funded.post("a-1", at=12)
    assert (posted.state, posted.posted_at, posted.entered_at) == (TransferState.POSTED, 12, 10)
    assert amounts(funded, "alice") == (1_000, 0, 1_000)
    assert amounts(funded, "hector") == (9_000, 0, 9_000)
    assert funded.pending() == ()
    # late repeats of every earlier message change nothing
    assert funded.post("a-1", at=13) == funded.pay("a-1", "alice", "hector", 9_000, at=13) == posted
    assert funded.set_pending("a-1", "alice", "hector", 9_000, at=14) == posted
    assert refusal_code(lambda: funded.void("a-1", at=15)) == "already_posted"


def test_voided_escrow_is_available_again_and_stays_voided(funded: Ledger) -> None:
    funded.set_pending("a-1", "alice", "hector", 9_000, at=10)
    assert refusal_code(lambda: funded.pay("a-1", "alice", "hector", 9_000, at=10)) == "already_pending"
    voided = funded.void("a-1", at=11)
    assert (voided.state, voided.voided_at) == (TransferState.VOIDED, 11)
    assert funded.void("a-1", at=12) == voided
    assert amounts(funded, "alice") == (10_000, 0, 10_000)
    for call in (
        lambda: funded.post("a-1", at=13),
        lambda: funded.pay("a-1", "alice", "hector", 9_000, at=13),
        lambda: funded.set_pending("a-1", "alice", "hector", 9_000, at=13),
    ):
        assert refusal_code(call) == "already_voided"


def test_refund_gives_back_at_most_the_charge_and_once(funded: Ledger) -> None:
    charge = funded.pay("a-1", "alice", "hector", 2_500, at=10)
    assert refusal_code(lambda: funded.refund("a-1", 2_501, at=11)) == "refund_exceeds_charge"
    refund = funded.refund("a-1", 2_000, at=12, memo="cancelled")
    assert refund == Transfer(
        "refund:a-1",
        "hector",
        "alice",
        2_000,
        "a-1",
        TransferKind.REFUND,
        12,
        posted_at=12,
        reverses=charge.transfer_id,
        memo="cancelled",
    )
    assert funded.refund("a-1", 2_000, at=13) == refund == funded.transfer("a-1", TransferKind.REFUND)
    assert refusal_code(lambda: funded.refund("a-1", 500, at=14)) == "already_refunded"
    assert refusal_code(lambda: funded.refund("a-1", at=14)) == "already_refunded"
    assert amounts(funded, "alice")[0] == 9_500
    assert amounts(funded, "hector")[0] == 500


def test_refund_without_amount_gives_all_of_it_back(funded: Ledger) -> None:
    funded.pay("a-1", "alice", "hector", 2_500, at=10)
    assert funded.refund("a-1", at=11).amount == 2_500
    assert amounts(funded, "alice")[0] == 10_000


def test_only_posted_payments_are_refunded(funded: Ledger) -> None:
    assert refusal_code(lambda: funded.refund("a-1", at=10)) == "unknown_transfer"
    funded.set_pending("a-1", "alice", "hector", 10, at=10)
    assert refusal_code(lambda: funded.refund("a-1", at=11)) == "not_posted"
    funded.void("a-1", at=12)
    assert refusal_code(lambda: funded.refund("a-1", at=13)) == "not_posted"
    assert refusal_code(lambda: funded.refund("d-1", at=13)) == "unknown_transfer"


def test_a_resource_that_spent_the_money_cannot_refund(funded: Ledger) -> None:
    funded.pay("a-1", "alice", "hector", 100, at=10)
    funded.pay("a-2", "hector", "kelvin", 60, at=11)
    assert refusal_code(lambda: funded.refund("a-1", at=12)) == "insufficient_funds"


@pytest.mark.parametrize(
    ("debit", "credit", "amount", "code"),
    [
        ("nobody", "hector", 1, "unknown_account"),
        ("alice", "nobody", 1, "unknown_account"),
        ("alice", "alice", 1, "same_account"),
        ("alice", ISSUING_ACCOUNT, 1, "wrong_account"),
        (ISSUING_ACCOUNT, "alice", 1, "wrong_account"),
        ("alice", "hector", 0, "amount_not_positive"),
        ("alice", "hector", -1, "amount_not_positive"),
        ("alice", "hector", AMOUNT_MAX + 1, "amount_too_large"),
        ("alice", "hector", 1.5, "malformed_value"),
        ("alice", "hector", True, "malformed_value"),
        ("", "hector", 1, "malformed_value"),
        ("alice", "hec tor", 1, "malformed_value"),
        ("alice", "hec\x00tor", 1, "malformed_value"),
    ],
)
def test_bad_payments_are_refused_by_code(funded: Ledger, debit: str, credit: str, amount: int, code: str) -> None:
    assert refusal_code(lambda: funded.pay("a-1", debit, credit, amount, at=10)) == code
    assert refusal_code(lambda: funded.set_pending("a-1", debit, credit, amount, at=10)) == code
    assert funded.transfer("a-1") is None


@pytest.mark.parametrize("at", [-1, 1.0])
def test_times_are_integers_from_1970_on(funded: Ledger, at: int) -> None:
    assert refusal_code(lambda: funded.pay("a-1", "alice", "hector", 1, at=at)) == "malformed_value"


def test_unknown_accounts_and_transfers_are_named(funded: Ledger) -> None:
    for call in (
        lambda: funded.balance("nobody"),
        lambda: funded.statement("nobody"),
        lambda: funded.deposit("d-2", "nobody", 1, at=3),
        lambda: funded.close_account("nobody", at=3),
        lambda: funded.register_certificate("nobody", PEM),
    ):
        with pytest.raises(LedgerRefusal, match="nobody") as caught:
            call()
        assert caught.value.code == "unknown_account"
    assert refusal_code(lambda: funded.post("a-1", at=3)) == "unknown_transfer"
    assert refusal_code(lambda: funded.void("a-1", at=3)) == "unknown_transfer"


def test_only_an_empty_account_closes_and_then_for_good(funded: Ledger) -> None:
    assert refusal_code(lambda: funded.close_account("alice", at=3)) == "account_not_empty"
    funded.set_pending("a-1", "alice", "hector", 5, at=4)
    assert refusal_code(lambda: funded.close_account("hector", at=5)) == "account_not_empty"
    funded.void("a-1", at=6)
    closed = funded.close_account("hector", at=7)
    assert closed.closed_at == 7
    assert funded.close_account("hector", at=8) == closed
    assert refusal_code(lambda: funded.pay("a-2", "alice", "hector", 5, at=9)) == "account_closed"
    assert refusal_code(lambda: funded.deposit("d-2", "hector", 5, at=9)) == "account_closed"
    assert refusal_code(lambda: funded.open_account("hector", AccountKind.RESOURCE, at=9)) == "account_closed"
    assert refusal_code(lambda: funded.close_account(ISSUING_ACCOUNT, at=9)) == "wrong_account"


def test_a_refusal_is_final(funded: Ledger) -> None:
    assert funded.refusal("a-1") is None
    first = funded.record_refusal("a-1", "bad_signature", "the user's signature\n  is broken", at=10)
    assert (first.code, first.reason, first.refused_at) == ("bad_signature", "the user's signature is broken", 10)
    assert funded.record_refusal("a-1", "insufficient_funds", "other", at=11) == first == funded.refusal("a-1")
    with pytest.raises(LedgerRefusal, match="bad_signature") as caught:
        funded.pay("a-1", "alice", "hector", 5, at=12)
    assert caught.value.code == "agreement_refused"
    assert refusal_code(lambda: funded.set_pending("a-1", "alice", "hector", 5, at=12)) == "agreement_refused"


def test_paid_and_refused_exclude_each_other(funded: Ledger) -> None:
    funded.pay("a-1", "alice", "hector", 5, at=10)
    assert refusal_code(lambda: funded.record_refusal("a-1", "expired", "too late", at=11)) == "already_posted"
    funded.set_pending("a-2", "alice", "hector", 5, at=12)
    assert refusal_code(lambda: funded.record_refusal("a-2", "expired", "too late", at=13)) == "already_pending"
    funded.void("a-2", at=14)
    assert funded.record_refusal("a-2", "expired", "too late", at=15).code == "expired"


def test_a_nonce_is_good_once_for_each_signer_and_until_it_expires(ledger: Ledger) -> None:
    assert ledger.use_nonce("alice", "n-1", expires_at=100, now=50)
    assert not ledger.use_nonce("alice", "n-1", expires_at=100, now=51)
    assert not ledger.use_nonce("alice", "n-1", expires_at=900, now=99)
    assert ledger.use_nonce("bob", "n-1", expires_at=100, now=52)
    assert not ledger.use_nonce("alice", "n-2", expires_at=60, now=60)
    assert not ledger.use_nonce("alice", "n-1", expires_at=100, now=100)
    assert ledger.use_nonce("alice", "n-1", expires_at=300, now=200)


def test_certificates_are_on_file(funded: Ledger) -> None:
    assert funded.certificate("alice") is None
    funded.register_certificate("alice", PEM)
    assert funded.certificate("alice") == PEM
    renewed = PEM.replace("MIIB", "MIIC")
    funded.register_certificate("alice", renewed)
    assert funded.certificate("alice") == renewed
    assert (
        refusal_code(lambda: funded.register_certificate("alice", "-----BEGIN PRIVATE KEY-----")) == "malformed_value"
    )


def test_statement_runs_from_the_opening_to_the_closing_balance(funded: Ledger) -> None:
    funded.pay("a-1", "alice", "hector", 2_500, at=10)
    funded.set_pending("a-2", "alice", "kelvin", 1_000, at=11)
    funded.refund("a-1", 500, at=20)
    funded.post("a-2", at=30)
    waiting = funded.set_pending("a-3", "alice", "kelvin", 700, at=31)
    whole = funded.statement("alice")
    assert [
        (line.transfer_id, line.posted_at, line.counterparty, line.amount, line.balance) for line in whole.lines
    ] == [
        ("deposit:d-1", 2, ISSUING_ACCOUNT, 10_000, 10_000),
        ("payment:a-1", 10, "hector", -2_500, 7_500),
        ("refund:a-1", 20, "hector", 500, 8_000),
        ("payment:a-2", 30, "kelvin", -1_000, 7_000),
    ]
    assert (whole.opening_balance, whole.closing_balance, whole.pending) == (0, 7_000, (waiting,))
    part = funded.statement("alice", since=10, until=20)
    assert (part.opening_balance, part.closing_balance) == (10_000, 8_000)
    assert part.lines == whole.lines[1:3]
    assert part.lines[0] == StatementLine("payment:a-1", 10, "payment", "hector", "a-1", -2_500, 7_500)
    assert funded.statement("alice", since=31).opening_balance == 7_000
    assert funded.statement("alice", until=1).lines == ()
    assert funded.statement("kelvin").lines[0].amount == 1_000


def test_statement_orders_by_time_and_then_by_posting(funded: Ledger) -> None:
    funded.set_pending("a-1", "alice", "hector", 1, at=3)
    funded.pay("a-2", "alice", "hector", 2, at=9)
    funded.post("a-1", at=9)
    funded.pay("a-3", "alice", "hector", 3, at=8)  # the clock was set back
    assert [line.agreement_id for line in funded.statement("alice").lines] == ["d-1", "a-3", "a-2", "a-1"]
    assert [line.balance for line in funded.statement("alice").lines] == [10_000, 9_997, 9_995, 9_994]


def test_entries_print_and_read_back(funded: Ledger) -> None:
    funded.set_pending("a-1", "alice", "hector", 1, at=3)
    funded.set_pending("a-2", "alice", "hector", 2, at=4, memo='he said "go"')
    funded.post("a-1", at=5)
    funded.void("a-2", at=6)
    funded.refund("a-1", at=7)
    funded.record_refusal("a-3", "expired", "too late", at=8)
    funded.close_account("kelvin", at=9)
    copy = parse_ledger(ledger_text(funded.entries(), funded.balances()))
    assert copy.entries() == funded.entries()
    assert copy.balances() == funded.balances()
    assert copy.validate() == []


def test_what_was_done_is_there_after_reopening(reopen: Callable[[], Ledger]) -> None:
    before = reopen()
    before.open_account("alice", AccountKind.USER, at=1)
    before.open_account("hector", AccountKind.RESOURCE, at=1)
    before.deposit("d-1", "alice", 100, at=2)
    paid = before.pay("a-1", "alice", "hector", 40, at=3)
    held = before.set_pending("a-2", "alice", "hector", 50, at=4)
    refusal = before.record_refusal("a-3", "expired", "too late", at=5)
    before.register_certificate("alice", PEM)
    assert before.use_nonce("alice", "n-1", expires_at=100, now=5)
    after = reopen()
    assert after.pay("a-1", "alice", "hector", 40, at=9) == paid
    assert after.pending() == (held,)
    assert after.refusal("a-3") == refusal
    assert after.certificate("alice") == PEM
    assert not after.use_nonce("alice", "n-1", expires_at=100, now=9)
    assert after.balance("alice") == before.balance("alice") == Balance(paid_account(after), 60, 50)
    assert after.entries() == before.entries()
    assert after.audit() == []


def paid_account(ledger: Ledger):
    return ledger.open_account("alice", AccountKind.USER, at=99)


def test_money_cannot_be_issued_beyond_the_limit(ledger: Ledger) -> None:
    ledger.open_account("alice", AccountKind.USER, at=1)
    assert refusal_code(lambda: ledger.deposit("d-1", "alice", AMOUNT_MAX + 1, at=2)) == "amount_too_large"
    ledger.deposit("d-2", "alice", AMOUNT_MAX, at=2)
    assert ledger.balance(ISSUING_ACCOUNT).available == ISSUE_LIMIT - AMOUNT_MAX


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("mysql://bank@host/ledger", "mysql"),
        ("sqlite://", "forget"),
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
