"""The audit of the ledger's invariants in SQL, at every start of a bank.

`ramp.ledger.validation` rebuilds every entry from its row, which takes too long for a start with many orders. This
audit compares the rows of the tables that grow with every purchase (`ramp.runtime.ledger.comparison`), and asks the
database for contradictions in the others. Both audits read every row and reject the same ledgers. `ramp bank audit`
runs both, because they share no code. The statements work on SQLite and PostgreSQL.

The audit skips the evidence, the certificates, and the words in memos and reasons, which no computation uses.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection, text

from ramp.runtime.ledger.comparison import compare_rows, read_rows

FINDINGS_MAX: Final = 20
"""Maximum findings of one question; a ledger without one of its tables has thousands."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query for rows that must not exist.

    Attributes:
        sentence: finding for a row of the answer, with names of columns in braces.
        query: SQL statement without a semicolon; an empty answer is correct.
    """

    sentence: str
    query: str


_TOTAL: Final = Question(
    "all balances sum to {total} minor units instead of zero",
    "SELECT total FROM (SELECT SUM(posted) AS total FROM accounts) AS summed WHERE total <> 0",
)

_ACCOUNTS: Final = Question(
    "account {account_id} and its entries disagree on whether it was opened, or is closed",
    """
    SELECT accounts.account_id FROM accounts
    LEFT JOIN entries AS opened ON opened.account_id = accounts.account_id AND opened.action = 'opened'
    LEFT JOIN entries AS closed ON closed.account_id = accounts.account_id AND closed.action = 'closed'
    WHERE opened.entry_number IS NULL OR (closed.entry_number IS NULL) <> (accounts.closed_at IS NULL)
    """,
)

_DANGLING: Final = Question(
    "entry {entry_number} ({action}) is of nothing that the ledger has",
    """
    SELECT entry_number, action FROM entries
    LEFT JOIN accounts ON accounts.account_id = entries.account_id
    LEFT JOIN transfers ON transfers.transfer_id = entries.transfer_id
    LEFT JOIN orders ON orders.order_id = entries.order_id
    WHERE NOT CASE action
        WHEN 'opened' THEN accounts.account_id IS NOT NULL
        WHEN 'closed' THEN accounts.account_id IS NOT NULL
        WHEN 'entered' THEN orders.order_id IS NOT NULL OR transfers.transfer_id IS NOT NULL
        WHEN 'settled' THEN orders.order_id IS NOT NULL OR transfers.transfer_id IS NOT NULL
        WHEN 'countersigned' THEN transfers.transfer_id IS NOT NULL
        ELSE 1 = 0
    END
    """,
)

# Entries of transfers must lie between those that opened and closed their accounts. Most accounts are opened before the
# first payment and never closed, so few transfers need a check.
_OPEN_ACCOUNTS: Final = Question(
    "{transfer_id} is entered or settled while account {account_id} is not open",
    """
    WITH moves AS (
        SELECT entry_number, transfers.transfer_id, debit_account, credit_account FROM entries
        JOIN transfers ON transfers.transfer_id = entries.transfer_id
        WHERE entry_number < (SELECT MAX(entry_number) FROM entries WHERE account_id IS NOT NULL AND action = 'opened')
            OR entry_number > (SELECT MIN(entry_number) FROM entries WHERE account_id IS NOT NULL AND action = 'closed')
    )
    SELECT moves.transfer_id, marks.account_id FROM moves
    JOIN entries AS marks ON marks.account_id IN (debit_account, credit_account)
    WHERE (marks.action = 'opened' AND moves.entry_number < marks.entry_number)
        OR (marks.action = 'closed' AND moves.entry_number > marks.entry_number)
    """,
)

_REFUNDS: Final = Question(
    "{transfer_id} gives {amount} minor units from {debit_account} to {credit_account}, which is no part of a payment",
    """
    SELECT refunds.transfer_id, refunds.amount, refunds.debit_account, refunds.credit_account
    FROM transfers AS refunds
    LEFT JOIN transfers AS charges ON charges.transfer_id = refunds.reverses AND charges.kind = 'payment'
    WHERE refunds.kind = 'refund' AND (
        charges.transfer_id IS NULL OR charges.posted_at IS NULL
        OR refunds.debit_account <> charges.credit_account OR refunds.credit_account <> charges.debit_account
        OR COALESCE(refunds.order_id, '') <> COALESCE(charges.order_id, '')
        OR refunds.amount > charges.amount + COALESCE(
            (SELECT SUM(charge) FROM amendments WHERE amendments.agreement_id = charges.agreement_id), 0
        )
    )
    """,
)

# A rebate's key is its agreement's id, a mark, and the number of the amendment.
_REBATES: Final = Question(
    "{transfer_id} gives {amount} minor units from {debit_account} to {credit_account}, which no amendment says",
    """
    SELECT transfer_id, amount, debit_account, credit_account FROM transfers
    WHERE kind = 'rebate' AND transfer_id NOT IN (
        SELECT rebates.transfer_id FROM amendments
        JOIN transfers AS rebates
            ON rebates.transfer_id = 'rebate:' || amendments.agreement_id || '#' || amendments.number
        JOIN transfers AS charges ON charges.transfer_id = 'payment:' || amendments.agreement_id
        WHERE amendments.code = '' AND amendments.amount = rebates.amount
            AND rebates.posted_at IS NOT NULL AND rebates.voided_at IS NULL AND charges.posted_at IS NOT NULL
            AND rebates.debit_account = charges.credit_account AND rebates.credit_account = charges.debit_account
            AND COALESCE(rebates.order_id, '') = COALESCE(charges.order_id, '')
    )
    """,
)

_AMENDED: Final = Question(
    "{agreement_id}: {back} minor units were given back of the {paid} paid, or not what its amendments say",
    """
    WITH changes AS (
        SELECT agreement_id, agreement_id || '#' || number AS change_key, 'rebate' AS kind, amount, charge
        FROM amendments WHERE code = ''
        UNION ALL
        SELECT additions.agreement_id, transfers.agreement_id, transfers.kind, transfers.amount, 0
        FROM amendments AS additions
        JOIN transfers ON transfers.transfer_id = 'refund:' || additions.agreement_id || '#' || additions.number
        WHERE additions.charge > 0
    ), given AS (
        SELECT agreement_id, SUM(amount) AS amount, SUM(charge) AS charge FROM changes GROUP BY agreement_id
    )
    SELECT given.agreement_id, given.amount + COALESCE(refunds.amount, 0) AS back,
        charges.amount + given.charge AS paid FROM given
    JOIN transfers AS charges ON charges.transfer_id = 'payment:' || given.agreement_id
    LEFT JOIN transfers AS refunds ON refunds.reverses = charges.transfer_id
    WHERE given.amount + COALESCE(refunds.amount, 0) > charges.amount + given.charge
    UNION ALL
    SELECT changes.agreement_id, changes.amount, 0 FROM changes
    LEFT JOIN transfers AS rebates ON rebates.transfer_id = changes.kind || ':' || changes.change_key
    WHERE changes.amount > 0 AND rebates.transfer_id IS NULL
    """,
)

# A line of an order pays for an addition to a slot, between the same two parties as the slot.
_ADDED: Final = Question(
    "amendment {number} of {agreement_id} and the payment of what it adds contradict each other",
    """
    SELECT amendments.agreement_id, amendments.number FROM amendments
    LEFT JOIN transfers AS paid ON paid.transfer_id = 'payment:' || amendments.agreement_id || '#' || amendments.number
    LEFT JOIN transfers AS charges ON charges.transfer_id = 'payment:' || amendments.agreement_id
    LEFT JOIN order_lines AS lines ON lines.order_id = paid.order_id AND lines.agreement_id = paid.agreement_id
    WHERE amendments.charge > 0 AND (
        paid.posted_at IS NULL OR paid.amount <> amendments.charge OR charges.posted_at IS NULL
        OR paid.debit_account <> charges.debit_account OR paid.credit_account <> charges.credit_account
        OR COALESCE(lines.becomes, '') <> amendments.digest
    )
    UNION ALL
    SELECT lines.agreement_id, 0 FROM order_lines AS lines
    JOIN orders ON orders.order_id = lines.order_id AND orders.state = 'posted'
    LEFT JOIN amendments ON lines.agreement_id = amendments.agreement_id || '#' || amendments.number
        AND amendments.charge = lines.cost
    WHERE lines.becomes <> '' AND amendments.number IS NULL
    """,
)

QUESTIONS: Final = (_TOTAL, _ACCOUNTS, _OPEN_ACCOUNTS, _REFUNDS, _REBATES, _AMENDED, _ADDED)
"""Questions besides the comparison of rows."""

_ENTRIES: Final = "SELECT COUNT(transfer_id), COUNT(order_id) FROM entries"


def contradictions(connection: Connection) -> list[str]:
    """Compare everything in a transaction that sees one state of the ledger.

    Returns:
        One sentence for each finding, at most `FINDINGS_MAX` of a kind, those about balances first; empty if the books
        agree.
    """
    # Garbage collection would take a third of the time for hundreds of thousands of rows without references to others.
    collected = gc.isenabled()
    gc.disable()
    try:
        rows = read_rows(connection)
        findings = [sentence for found in compare_rows(rows) for sentence in found[:FINDINGS_MAX]]
    finally:
        if collected:
            gc.enable()
    for question in QUESTIONS:
        findings += _answers(connection, question)
    # If every entry of a transfer or order was found with it, only other entries need the question.
    dangling = _DANGLING
    if connection.execute(text(_ENTRIES)).one() == rows.entries:
        dangling = replace(
            dangling, query=f"{dangling.query} AND entries.transfer_id IS NULL AND entries.order_id IS NULL"
        )
    return findings + _answers(connection, dangling)


def _answers(connection: Connection, question: Question) -> list[str]:
    rows = connection.execute(text(f"{question.query} LIMIT {FINDINGS_MAX}")).mappings()
    return [question.sentence.format_map(dict(row)) for row in rows]
