"""`ramp balance`: signed queries to the bank about the user's own account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import click

from ramp.cli.connection import ask, open_market
from ramp.cli.options import check_period, csv_option, example, market_options, moment_type
from ramp.cli.views.fields import AMOUNT, CREDITS, MOMENT, Field, Fields, address
from ramp.cli.views.output import amount_text, moment_text, print_json, print_line, waiting
from ramp.client import dialogues
from ramp.client.identifiers import shortened
from ramp.client.jobs.job import deliveries
from ramp.client.market import Market
from ramp.client.results import Account, short_name
from ramp.model.contents import StatementLine, TradeLine
from ramp.model.instant import Instant
from ramp.runtime.state_folder import StateFolder

Posting = TypeVar("Posting", StatementLine, TradeLine)

AGREEMENT: Final[Field[StatementLine | TradeLine]] = Field(
    "agreement_id", "", lambda line: None if line.deposit_id else line.agreement_id
)
DEPOSIT: Final[Field[StatementLine | TradeLine]] = Field("deposit_id", "", lambda line: line.deposit_id or None)


def reference(lines: Sequence[Posting], domain: str) -> Field[Posting]:
    """Return the column of references: short agreement ids, whole deposit ids without the market's domain."""
    short = shortened([line.agreement_id for line in lines if not line.deposit_id])
    return Field(
        "",
        "Agreement (or deposit)",
        lambda line: short_name(line.deposit_id, domain) or short[line.agreement_id],
    )


ACCOUNT: Final[Fields[Account]] = Fields(
    Field("account", "Account", lambda each: each.name),
    Field("balance", "Balance", lambda each: each.balance, CREDITS),
    Field("reserved", "Reserved", lambda each: each.reserved, CREDITS),
    Field("overdraft", "Overdraft", lambda each: each.overdraft, CREDITS),
    Field("available", "Available", lambda each: each.available, CREDITS),
    Field("time", "At", lambda each: each.statement.bank_time, MOMENT),
)


def _lines(lines: Sequence[StatementLine], delivered: Mapping[str, str], domain: str) -> Fields[StatementLine]:
    return Fields(
        Field("time", "Time", lambda line: line.posted_at, MOMENT),
        Field("kind", "Kind", lambda line: line.kind),
        Field("counterparty", "With", lambda line: line.counterparty, address(partial(short_name, domain=domain))),
        AGREEMENT,
        DEPOSIT,
        Field("transfer_id", "", lambda line: line.transfer_id),
        Field("amount", "Amount (credits)", lambda line: line.amount, AMOUNT),
        Field("balance", "Balance (credits)", lambda line: line.balance, AMOUNT),
        reference(lines, domain),
        Field(
            "delivery",
            "Delivery",
            lambda line: delivered.get(line.agreement_id),
            shown_if=lambda line: line.agreement_id in delivered,
        ),
    )


@click.command(
    epilog=example(
        "ramp balance --user bob",
        "ramp balance --statement --since 2026-11-21 --until now",
        "ramp balance --statement --csv > statement.csv",
    )
)
@click.option("--statement", is_flag=True, help="Show every payment and refund with the balance after it.")
@click.option("--since", type=moment_type, metavar="TIME", help="With --statement: start (default: the beginning).")
@click.option("--until", type=moment_type, metavar="TIME", help="With --statement: end (default: now).")
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
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")
    if not statement and (since is not None or until is not None):
        raise click.UsageError("--since and --until need --statement")
    check_period(since, until)
    market = open_market(state, user)
    if statement:
        _statement(market, since, until, as_csv=as_csv, as_json=as_json)
    else:
        _balance(market, as_csv=as_csv, as_json=as_json)


def _balance(market: Market, *, as_csv: bool, as_json: bool) -> None:
    account = ask(market, dialogues.account(), "asking the bank")
    if as_csv:
        ACCOUNT.print_csv([account])
    else:
        ACCOUNT.print_one(account, as_json=as_json)


def _statement(market: Market, since: Instant | None, until: Instant | None, *, as_csv: bool, as_json: bool) -> None:
    account = ask(market, dialogues.account(since or 0, until), "asking the bank")
    with waiting("asking the resources"):
        delivered = {agreement_id: job.delivery for agreement_id, job in deliveries(market.jobs()).items()}
    lines = account.statement.lines
    fields = _lines(lines, delivered, market.access.domain)
    if as_json:
        print_json({**ACCOUNT.plain(account), "lines": [fields.plain(line) for line in lines]})
        return
    if as_csv:
        fields.print_csv(lines)
        return
    fields.print_table(lines)
    if not lines:
        click.echo("No payments in this period")
    print_line(
        f"Balance of {account.name}: {amount_text(account.balance)} at {moment_text(account.statement.bank_time)}"
    )
