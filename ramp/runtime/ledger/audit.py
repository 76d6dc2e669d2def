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

# The transfer of a change has the agreement's id as its key where it ends the agreement; else a mark and the number of
# the change follow. An addition is paid by a line of an order, between the same two parties as the slot.
_CHANGES: Final = Question(
    "change {number} of {agreement_id} over {amount} minor units and its transfer contradict each other",
    """
    WITH posted AS (
        SELECT agreement_id, number, digest, amount, amount > 0 AS adds,
            CASE WHEN amount > 0 THEN 'payment:' ELSE 'refund:' END || agreement_id
                || CASE number WHEN 0 THEN '' ELSE '#' || number END AS transfer_id
        FROM changes WHERE code = ''
    )
    SELECT posted.agreement_id, posted.number, posted.amount FROM posted
    LEFT JOIN transfers AS moved ON moved.transfer_id = posted.transfer_id
    LEFT JOIN transfers AS paid ON paid.transfer_id = 'payment:' || posted.agreement_id
    LEFT JOIN order_lines AS lines ON lines.order_id = moved.order_id AND lines.agreement_id = moved.agreement_id
    WHERE moved.posted_at IS NULL OR moved.amount <> ABS(posted.amount) OR paid.posted_at IS NULL
        OR moved.debit_account <> CASE WHEN adds THEN paid.debit_account ELSE paid.credit_account END
        OR moved.credit_account <> CASE WHEN adds THEN paid.credit_account ELSE paid.debit_account END
        OR CASE WHEN adds THEN COALESCE(lines.becomes, '') <> posted.digest
            ELSE COALESCE(moved.order_id, '') <> COALESCE(paid.order_id, '') END
    """,
)

_UNFOUNDED: Final = Question(
    "{transfer_id} moves {amount} minor units from {debit_account} to {credit_account} for no change that was decided",
    """
    SELECT transfers.transfer_id, transfers.amount, debit_account, credit_account FROM transfers
    LEFT JOIN order_lines AS lines
        ON lines.order_id = transfers.order_id AND lines.agreement_id = transfers.agreement_id
    WHERE posted_at IS NOT NULL AND (kind = 'refund' OR (kind = 'payment' AND COALESCE(lines.becomes, '') <> ''))
        AND transfer_id NOT IN (
            SELECT CASE WHEN amount > 0 THEN 'payment:' ELSE 'refund:' END || agreement_id
                || CASE number WHEN 0 THEN '' ELSE '#' || number END
            FROM changes WHERE code = ''
        )
    """,
)

_RETURNED: Final = Question(
    "the changes of {agreement_id} leave {remaining} minor units of what was paid",
    """
    SELECT given.agreement_id, transfers.amount + given.amount AS remaining FROM (
        SELECT agreement_id, SUM(amount) AS amount FROM changes GROUP BY agreement_id
    ) AS given
    JOIN transfers ON transfers.transfer_id = 'payment:' || given.agreement_id
    WHERE transfers.amount + given.amount < 0
    """,
)

QUESTIONS: Final = (_TOTAL, _ACCOUNTS, _OPEN_ACCOUNTS, _CHANGES, _UNFOUNDED, _RETURNED)
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
