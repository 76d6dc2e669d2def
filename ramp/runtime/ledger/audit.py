"""The ledger's invariants as questions to its database: what a bank asks at every start.

`ramp.ledger.validation` reads every row into Python and walks through them; with many orders that takes too long for a
start. Here the database compares whole tables, and only rows that contradict each other come back. Both look at every
row, from the first to the last, and find the same ledgers broken; `ramp bank audit` does both, for neither uses the
other's code. The statements are written so that SQLite and PostgreSQL understand them.

Not looked at are the evidence, the certificates, and the words in memos and reasons: nothing is computed from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, text

FINDINGS_MAX: Final = 20
"""Most findings of one question; a ledger that has lost a table has thousands."""


@dataclass(frozen=True, slots=True)
class Question:
    """One thing that must not be found.

    Attributes:
        sentence: what a row of the answer says, with the names of its columns in braces.
        query: statement without an end; an empty answer means that all is well.
    """

    sentence: str
    query: str


_BALANCES: Final = Question(
    "account {account_id} has {kept} minor units {what}, its transfers give {given}",
    """
    WITH moved AS (
        SELECT account_id, SUM(posted) AS posted, SUM(reserved) AS reserved FROM (
            SELECT debit_account AS account_id,
                SUM(CASE WHEN posted_at IS NULL THEN 0 ELSE -amount END) AS posted,
                SUM(CASE WHEN posted_at IS NULL AND voided_at IS NULL THEN amount ELSE 0 END) AS reserved
            FROM transfers GROUP BY debit_account
            UNION ALL
            SELECT credit_account, SUM(amount), 0 FROM transfers WHERE posted_at IS NOT NULL GROUP BY credit_account
        ) AS sides GROUP BY account_id
    ), compared AS (
        SELECT accounts.account_id, 'posted' AS what, accounts.posted AS kept, COALESCE(moved.posted, 0) AS given
        FROM accounts LEFT JOIN moved ON moved.account_id = accounts.account_id
        UNION ALL
        SELECT accounts.account_id, 'reserved', accounts.reserved, COALESCE(moved.reserved, 0)
        FROM accounts LEFT JOIN moved ON moved.account_id = accounts.account_id
    )
    SELECT account_id, what, kept, given FROM compared WHERE kept <> given ORDER BY account_id, what
    """,
)

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
    LEFT JOIN refusals ON refusals.agreement_id = entries.agreement_id
    WHERE NOT CASE action
        WHEN 'opened' THEN accounts.account_id IS NOT NULL
        WHEN 'closed' THEN accounts.account_id IS NOT NULL
        WHEN 'entered' THEN orders.order_id IS NOT NULL OR transfers.transfer_id IS NOT NULL
        WHEN 'settled' THEN orders.order_id IS NOT NULL OR transfers.transfer_id IS NOT NULL
        WHEN 'countersigned' THEN transfers.transfer_id IS NOT NULL
        WHEN 'refused' THEN refusals.agreement_id IS NOT NULL
        ELSE 1 = 0
    END
    """,
)

_TRANSFERS: Final = Question(
    "{transfer_id} ({amount} minor units from {debit_account} to {credit_account}) contradicts itself or its entries",
    """
    SELECT transfers.transfer_id, amount, debit_account, credit_account FROM transfers
    LEFT JOIN entries AS entered ON entered.transfer_id = transfers.transfer_id AND entered.action = 'entered'
    LEFT JOIN entries AS settled ON settled.transfer_id = transfers.transfer_id AND settled.action = 'settled'
    WHERE entered.entry_number IS NULL
        OR transfers.transfer_id <> kind || ':' || transfers.agreement_id
        OR kind NOT IN ('payment', 'refund', 'deposit', 'rebate', 'compensation')
        OR amount <= 0
        OR debit_account = credit_account
        OR debit_account NOT IN (SELECT account_id FROM accounts)
        OR credit_account NOT IN (SELECT account_id FROM accounts)
        OR (posted_at IS NOT NULL AND voided_at IS NOT NULL)
        OR (kind = 'refund') <> (reverses IS NOT NULL)
        OR (posted_at IS NULL AND voided_at IS NULL AND transfers.order_id IS NULL)
        OR settled.entry_number < entered.entry_number
        OR (settled.entry_number IS NOT NULL AND (kind <> 'payment' OR (posted_at IS NULL AND voided_at IS NULL)))
    """,
)

# Between the entries that opened and closed an account lie those of all its transfers. Accounts are mostly opened
# before anything is paid and never closed, so that few transfers need to be looked at.
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

# A rebate's key is its agreement's id, a mark, and the number of the amendment, or of the reclamation behind an r.
_REBATES: Final = Question(
    "{transfer_id} gives {amount} minor units from {debit_account} to {credit_account}, which no amendment says",
    """
    WITH changes AS (
        SELECT agreement_id, agreement_id || '#' || number AS change_key, 'rebate' AS kind, amount FROM amendments
        WHERE code = ''
        UNION ALL
        SELECT agreement_id, agreement_id || '#r' || number, 'rebate', refund FROM reclamations
        WHERE decided_at IS NOT NULL AND code = ''
        UNION ALL
        SELECT agreement_id, agreement_id || '#r' || number, 'compensation', compensation FROM reclamations
        WHERE decided_at IS NOT NULL AND code = '' AND compensation > 0
    )
    SELECT rebates.transfer_id, rebates.amount, rebates.debit_account, rebates.credit_account
    FROM transfers AS rebates
    LEFT JOIN changes ON rebates.agreement_id = changes.change_key AND rebates.kind = changes.kind
        AND changes.amount = rebates.amount
    LEFT JOIN transfers AS charges ON charges.transfer_id = 'payment:' || changes.agreement_id
    WHERE rebates.kind IN ('rebate', 'compensation') AND (
        charges.transfer_id IS NULL OR charges.posted_at IS NULL
        OR rebates.debit_account <> charges.credit_account OR rebates.credit_account <> charges.debit_account
        OR COALESCE(rebates.order_id, '') <> COALESCE(charges.order_id, '')
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
        SELECT agreement_id, agreement_id || '#r' || number, 'rebate', refund, 0 FROM reclamations
        WHERE decided_at IS NOT NULL AND code = ''
        UNION ALL
        SELECT agreement_id, agreement_id || '#r' || number, 'compensation', compensation, 0 FROM reclamations
        WHERE decided_at IS NOT NULL AND code = '' AND compensation > 0
    ), given AS (
        SELECT agreement_id, SUM(amount) AS amount, SUM(charge) AS charge FROM changes
        WHERE kind = 'rebate' GROUP BY agreement_id
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

# What is added to a slot is paid by a line of an order, between the two between whom the slot was paid.
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

_REFUSED: Final = Question(
    "{agreement_id} is refused, but {transfer_id} is not voided",
    """
    SELECT refusals.agreement_id, transfer_id FROM refusals
    JOIN transfers ON transfers.agreement_id = refusals.agreement_id
    WHERE kind = 'payment' AND voided_at IS NULL
    """,
)

# Only what is given back may bring an account below its limit, and only a resource's: it owes the money then. So those
# debited for nothing else, as most resources', need no walk; nor do entries that leave what a user can spend as it was.
_OVERDRAFTS: Final = Question(
    "{transfer_id} brings {account_id} {missing} minor units below its limit",
    """
    WITH spenders AS (
        SELECT DISTINCT debit_account AS account_id FROM transfers
        JOIN accounts ON accounts.account_id = debit_account
        WHERE accounts.kind <> 'resource' OR transfers.kind NOT IN ('refund', 'rebate', 'compensation')
    ), moves AS (
        SELECT entry_number, transfers.transfer_id, kind, debit_account AS account_id, 1 AS is_debit,
            CASE WHEN action = 'entered' THEN -amount ELSE 0 END
            + CASE WHEN voided_at IS NOT NULL AND (action = 'settled' OR kind <> 'payment') THEN amount ELSE 0 END
            AS change
        FROM entries JOIN transfers ON transfers.transfer_id = entries.transfer_id
        WHERE debit_account IN (SELECT account_id FROM spenders) AND (
            action = 'entered' OR (action = 'settled' AND (
                voided_at IS NOT NULL OR debit_account IN (SELECT account_id FROM accounts WHERE kind = 'resource')
            ))
        )
        UNION ALL
        SELECT MAX(entry_number), transfers.transfer_id, kind, credit_account, 0, MAX(amount)
        FROM entries JOIN transfers ON transfers.transfer_id = entries.transfer_id
        WHERE action IN ('entered', 'settled') AND posted_at IS NOT NULL
            AND credit_account IN (SELECT account_id FROM spenders)
        GROUP BY transfers.transfer_id, kind, credit_account
    ), running AS (
        SELECT entry_number, transfer_id, kind, account_id, is_debit,
            SUM(change) OVER (PARTITION BY account_id ORDER BY entry_number) AS spendable
        FROM moves
    )
    SELECT transfer_id, accounts.account_id, -spendable - credit_limit AS missing FROM running
    JOIN accounts ON accounts.account_id = running.account_id
    WHERE spendable + credit_limit < 0 AND is_debit = 1
        AND (accounts.kind <> 'resource' OR running.kind NOT IN ('refund', 'rebate', 'compensation'))
    ORDER BY entry_number
    """,
)

_ORDERS: Final = Question(
    "order {order_id} of {user_account} is {state}, which its own times, lines, account or entries contradict",
    """
    SELECT orders.order_id, user_account, state FROM orders
    LEFT JOIN entries AS entered ON entered.order_id = orders.order_id AND entered.action = 'entered'
    LEFT JOIN entries AS settled ON settled.order_id = orders.order_id AND settled.action = 'settled'
    LEFT JOIN accounts ON accounts.account_id = user_account
    WHERE entered.entry_number IS NULL
        OR settled.entry_number < entered.entry_number
        OR state NOT IN ('reserved', 'posted', 'voided', 'refused')
        OR (state = 'reserved') <> (settled_at IS NULL)
        OR (state = 'posted' AND (settled.entry_number IS NULL OR settled_at >= valid_until))
        OR (state IN ('reserved', 'refused') AND settled.entry_number IS NOT NULL)
        OR (
            (state = 'reserved' OR settled.entry_number IS NOT NULL) AND (
                entered_at >= valid_until OR accounts.kind IS NULL OR accounts.kind <> 'user'
                OR NOT EXISTS (SELECT 1 FROM order_lines WHERE order_lines.order_id = orders.order_id)
            )
        )
    """,
)

# An order's entries come before those of its transfers; others may stand between where several banks write at once.
_LINES: Final = Question(
    "order {order_id} is {state}, but its payment of {agreement_id} from {user_account} to {resource} is not",
    """
    SELECT orders.order_id, state, lines.agreement_id, user_account, lines.resource FROM orders
    JOIN order_lines AS lines ON lines.order_id = orders.order_id
    JOIN entries AS entered ON entered.order_id = orders.order_id AND entered.action = 'entered'
    LEFT JOIN entries AS settled ON settled.order_id = orders.order_id AND settled.action = 'settled'
    LEFT JOIN accounts ON accounts.account_id = lines.resource
    LEFT JOIN transfers AS paid ON paid.transfer_id = 'payment:' || lines.agreement_id
    LEFT JOIN entries AS paid_entered ON paid_entered.transfer_id = paid.transfer_id
        AND paid_entered.action = 'entered'
    LEFT JOIN entries AS paid_settled ON paid_settled.transfer_id = paid.transfer_id
        AND paid_settled.action = 'settled'
    WHERE (state = 'reserved' OR settled.entry_number IS NOT NULL) AND (
        paid.transfer_id IS NULL OR paid.order_id IS NULL OR paid.order_id <> orders.order_id
        OR paid.debit_account <> user_account OR paid.credit_account <> lines.resource OR paid.amount <> lines.cost
        OR COALESCE(paid.posted_at, -1) <> CASE state WHEN 'posted' THEN settled_at ELSE -1 END
        OR COALESCE(paid.voided_at, -1) <> CASE state WHEN 'voided' THEN settled_at ELSE -1 END
        OR accounts.kind IS NULL OR accounts.kind <> 'resource'
        OR paid_entered.entry_number IS NULL
        OR paid_entered.entry_number < entered.entry_number OR paid_entered.entry_number > settled.entry_number
        OR (paid_settled.entry_number IS NULL) <> (settled.entry_number IS NULL)
        OR paid_settled.entry_number < settled.entry_number
    )
    """,
)

_COUNTERSIGNED: Final = Question(
    "order {order_id} of {user_account} is {state}, and {resource}'s countersignature of {agreement_id} denies it",
    """
    SELECT orders.order_id, user_account, state, resource, lines.agreement_id FROM orders
    JOIN order_lines AS lines ON lines.order_id = orders.order_id
    LEFT JOIN entries AS entered ON entered.order_id = orders.order_id AND entered.action = 'entered'
    LEFT JOIN entries AS settled ON settled.order_id = orders.order_id AND settled.action = 'settled'
    LEFT JOIN transfers ON transfers.order_id = orders.order_id
        AND transfers.transfer_id = 'payment:' || lines.agreement_id
    LEFT JOIN entries AS signed ON signed.transfer_id = transfers.transfer_id AND signed.action = 'countersigned'
    WHERE (countersigned_at IS NULL) <> (signed.entry_number IS NULL)
        OR (countersigned_at IS NULL AND state = 'posted')
        OR (countersigned_at IS NULL) <> (starts_at IS NULL)
        OR countersigned_at >= valid_until
        OR signed.entry_number < entered.entry_number
        OR signed.entry_number > settled.entry_number
    """,
)

# What was paid before there were orders comes before all of them, and rests on none.
_PAYMENTS: Final = Question(
    "{transfer_id} ({amount} minor units from {debit_account} to {credit_account}) has no order that says so",
    """
    SELECT transfers.transfer_id, amount, debit_account, credit_account FROM transfers
    LEFT JOIN orders ON orders.order_id = transfers.order_id
    LEFT JOIN entries AS settled ON settled.order_id = orders.order_id AND settled.action = 'settled'
    LEFT JOIN order_lines AS lines ON lines.order_id = transfers.order_id
        AND lines.agreement_id = transfers.agreement_id
    WHERE kind = 'payment' AND CASE
        WHEN transfers.order_id IS NOT NULL
        THEN lines.order_id IS NULL OR (state <> 'reserved' AND settled.entry_number IS NULL)
        ELSE EXISTS (
            SELECT 1 FROM entries WHERE entries.transfer_id = transfers.transfer_id
            AND entry_number > (SELECT MIN(entry_number) FROM entries WHERE order_id IS NOT NULL)
        )
    END
    """,
)

QUESTIONS: Final = (
    _BALANCES,
    _TOTAL,
    _ACCOUNTS,
    _TRANSFERS,
    _OPEN_ACCOUNTS,
    _OVERDRAFTS,
    _REFUNDS,
    _REBATES,
    _AMENDED,
    _ADDED,
    _ORDERS,
    _LINES,
    _COUNTERSIGNED,
    _PAYMENTS,
    _REFUSED,
    _DANGLING,
)
"""What is asked; accounts first, so that the first finding names one wherever money is concerned."""


def contradictions(connection: Connection) -> list[str]:
    """Ask the database everything.

    Args:
        connection: in a transaction that sees one state of the ledger.

    Returns:
        One sentence for each finding, at most `FINDINGS_MAX` of a kind; none if the books agree.
    """
    return [
        question.sentence.format_map(dict(row))
        for question in QUESTIONS
        for row in connection.execute(text(f"{question.query} LIMIT {FINDINGS_MAX}")).mappings()
    ]
