"""`ramp balance`: signed queries to the bank about the user's own account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

from ramp.cli.connection import ask, open_market
from ramp.cli.options import csv_option, example, market_options
from ramp.cli.time_arguments import MomentType
from ramp.cli.views.output import (
    amount_json,
    amount_text,
    moment_text,
    print_csv,
    print_json,
    print_line,
    print_pairs,
    print_rows,
)
from ramp.cli.views.postings import FOR, reference_object, reference_texts
from ramp.client import dialogues
from ramp.client.jobs.job import deliveries, job_of
from ramp.client.market import Market
from ramp.client.results import Account, short_name
from ramp.model.contents import StatementLine
from ramp.model.instant import Instant, iso
from ramp.model.money import credits_text
from ramp.runtime.state_folder import StateFolder

STATEMENT_COLUMNS: Final = (
    "time",
    "kind",
    "counterparty",
    "agreement_id",
    "deposit_id",
    "transfer_id",
    "amount",
    "balance",
    "delivery",
)
"""Columns of a statement as CSV: the names of the lines in JSON."""


def _one_format(as_csv: bool, as_json: bool) -> None:
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")


def account_object(account: Account) -> dict[str, object]:
    """Convert a balance to JSON types, in credits."""
    return {
        "account": account.name,
        "balance": amount_json(account.balance),
        "reserved": amount_json(account.reserved),
        "overdraft": amount_json(account.overdraft),
        "available": amount_json(account.available),
        "time": iso(account.statement.bank_time),
    }


@click.command(
    epilog=example(
        "ramp balance --user bob",
        "ramp balance --statement --since 2026-11-21 --until now",
        "ramp balance --statement --csv > statement.csv",
    )
)
@click.option("--statement", is_flag=True, help="Show every payment and refund with the balance after it.")
@click.option("--since", type=MomentType(), metavar="TIME", help="With --statement: start (default: the beginning).")
@click.option("--until", type=MomentType(), metavar="TIME", help="With --statement: end (default: now).")
@csv_option
@market_options
def balance(
    statement: bool,
    since: Instant | None,
    until: Instant | None,
    as_csv: bool,
    user: str | None,
    state: StateFolder,
    as_json: bool,
) -> None:
    """Show your account's balance or statement; the bank answers a query signed with your key.

    A statement also shows the delivery of slots that ran jobs. --json and --csv give the reason of a line as
    `agreement_id`, or `deposit_id` for deposits; `transfer_id` is the bank's own.

    The resource records delivery: `on_time`, `late`, `undelivered` (its refund is a line of its own), `unknown`,
    `cancelled` (before the job started), or `pending`. Only slots with a launched job have it; see `ramp jobs` for
    details.
    """
    _one_format(as_csv, as_json)
    if not statement and (since is not None or until is not None):
        raise click.UsageError("--since and --until need --statement")
    if since is not None and until is not None and since > until:
        raise click.UsageError(f"--since must be before --until: got {moment_text(since)} and {moment_text(until)}")
    market = open_market(state, user)
    if statement:
        _statement(market, since, until, as_csv=as_csv, as_json=as_json)
    else:
        _balance(market, as_csv=as_csv, as_json=as_json)


def _balance(market: Market, *, as_csv: bool, as_json: bool) -> None:
    account = ask(market, dialogues.account(), "asking the bank")
    if as_json or as_csv:
        found = account_object(account)
        print_csv(tuple(found), [found]) if as_csv else print_json(found)
        return
    print_pairs(
        (
            ("Account", account.name),
            ("Balance", amount_text(account.balance)),
            ("Reserved", amount_text(account.reserved)),
            ("Overdraft", amount_text(account.overdraft)),
            ("Available", amount_text(account.available)),
            ("At", moment_text(account.statement.bank_time)),
        )
    )


def _statement(market: Market, since: Instant | None, until: Instant | None, *, as_csv: bool, as_json: bool) -> None:
    account = ask(market, dialogues.account(since or 0, until), "asking the bank")
    jobs = [job_of(each, market.access.domain) for each in ask(market, dialogues.jobs(), "asking the resources")]
    delivered = {agreement_id: job.delivery for agreement_id, job in deliveries(jobs).items()}
    lines = account.statement.lines
    if as_json:
        print_json({**account_object(account), "lines": [_line_object(line, delivered) for line in lines]})
        return
    if as_csv:
        print_csv(STATEMENT_COLUMNS, [_line_object(line, delivered) for line in lines])
        return
    some = bool(delivered.keys() & {line.agreement_id for line in lines})
    columns = ("Time", "Kind", "With", "Amount (credits)", "Balance (credits)", FOR, *["Delivery"] * some)
    domain = market.access.domain
    print_rows(
        columns,
        [
            (
                moment_text(line.posted_at),
                line.kind,
                short_name(line.counterparty, domain),
                credits_text(line.amount),
                credits_text(line.balance),
                reference,
                *[delivered.get(line.agreement_id, "")] * some,
            )
            for line, reference in zip(lines, reference_texts(lines, domain), strict=True)
        ],
        right=columns[3:5],
    )
    if not lines:
        click.echo("No payments in this period")
    print_line(
        f"Balance of {account.name}: {amount_text(account.balance)} at {moment_text(account.statement.bank_time)}"
    )


def _line_object(line: StatementLine, delivered: Mapping[str, str]) -> dict[str, object]:
    return {
        "time": iso(line.posted_at),
        "kind": line.kind,
        "counterparty": line.counterparty,
        **reference_object(line),
        "transfer_id": line.transfer_id,
        "amount": amount_json(line.amount),
        "balance": amount_json(line.balance),
        "delivery": delivered.get(line.agreement_id),
    }
