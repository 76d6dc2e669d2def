"""`ramp balance`: a user's account; `ramp bank`: overview, deposits and audits of the keeper (paper section 6.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import click

from ramp.cli.connection import ask, open_market
from ramp.cli.options import check_period, credits_type, csv_option, example, market_options, moment_type, state_options
from ramp.cli.views.fields import AMOUNT, CREDITS, MOMENT, Field, Fields, address
from ramp.cli.views.output import amount_text, count_text, moment_text, print_line, printed_as_json, waiting, wants_json
from ramp.client import dialogues
from ramp.client.access import running, status
from ramp.client.connecting import ask_keeper
from ramp.client.identifiers import shortened
from ramp.client.jobs import deliveries
from ramp.client.market import Market
from ramp.client.results import Account, short_name
from ramp.model.contents import AccountLine, StatementLine, TradeLine
from ramp.model.instant import Instant, iso
from ramp.model.money import credits_decimal, credits_text
from ramp.runtime.state_folder import StateFolder

Posting = TypeVar("Posting", StatementLine, TradeLine)

AGREEMENT: Final[Field[StatementLine | TradeLine]] = Field(
    "agreement_id", "", lambda line: None if line.deposit_id else line.agreement_id
)
DEPOSIT: Final[Field[StatementLine | TradeLine]] = Field("deposit_id", "", lambda line: line.deposit_id or None)

ACCOUNT: Final[Fields[Account]] = Fields(
    Field("account", "Account", lambda each: each.name),
    Field("balance", "Balance", lambda each: each.balance, CREDITS),
    Field("reserved", "Reserved", lambda each: each.reserved, CREDITS),
    Field("overdraft", "Overdraft", lambda each: each.overdraft, CREDITS),
    Field("available", "Available", lambda each: each.available, CREDITS),
    Field("time", "At", lambda each: each.statement.bank_time, MOMENT),
)


def reference(lines: Sequence[Posting], domain: str) -> Field[Posting]:
    """Return the column of references: short agreement ids, whole deposit ids without the market's domain."""
    short = shortened([line.agreement_id for line in lines if not line.deposit_id])
    return Field(
        "",
        "Agreement (or deposit)",
        lambda line: short_name(line.deposit_id, domain) or short[line.agreement_id],
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
    statement: bool, since: Instant | None, until: Instant | None, as_csv: bool, user: str | None, state: StateFolder
) -> None:
    """Show your account's balance or statement; the bank answers a query signed with your key.

    A statement also shows the delivery of slots that ran jobs. --json and --csv give the reason of a line as
    `agreement_id`, or `deposit_id` for deposits; `transfer_id` is the bank's own.

    The resource records delivery: `on_time`, `late`, `undelivered` (its refund is a line of its own), `unknown`,
    `cancelled` (before the job started), or `pending`. Only slots with a launched job have it; see `ramp jobs` for
    details.
    """
    if as_csv and wants_json():
        raise click.UsageError("--csv and --json exclude each other")
    if not statement and (since is not None or until is not None):
        raise click.UsageError("--since and --until need --statement")
    check_period(since, until)
    market = open_market(state, user)
    if statement:
        _statement(market, since, until, as_csv=as_csv)
        return
    account = ask(market, dialogues.account(), "asking the bank")
    if as_csv:
        ACCOUNT.print_csv([account])
    else:
        ACCOUNT.print_one(account)


def _statement(market: Market, since: Instant | None, until: Instant | None, *, as_csv: bool) -> None:
    account = ask(market, dialogues.account(since or 0, until), "asking the bank")
    with waiting("asking the resources"):
        delivered = {agreement_id: job.delivery for agreement_id, job in deliveries(market.jobs()).items()}
    lines = account.statement.lines
    fields = _lines(lines, delivered, market.access.domain)
    if printed_as_json({**ACCOUNT.plain(account), "lines": [fields.plain(line) for line in lines]}):
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


def _accounts(domain: str) -> Fields[AccountLine]:
    return Fields(
        Field("account", "Account", lambda each: each.account, address(partial(short_name, domain=domain))),
        Field("kind", "Kind", lambda each: each.kind),
        Field("balance", "Balance (credits)", lambda each: each.balance, AMOUNT),
        Field("reserved", "Reserved (credits)", lambda each: each.reserved, AMOUNT),
        Field(
            "overdraft",
            "Overdraft (credits)",
            lambda each: each.credit_limit if each.is_limited else None,
            AMOUNT,
            text=lambda each: credits_text(each.credit_limit) if each.is_limited else "no limit",
        ),
    )


def _trades(trades: Sequence[TradeLine], domain: str) -> Fields[TradeLine]:
    named = address(partial(short_name, domain=domain))
    short = shortened([trade.order_id for trade in trades])
    return Fields(
        Field("time", "Time", lambda each: each.posted_at, MOMENT),
        Field("kind", "Kind", lambda each: each.kind),
        Field("from", "From", lambda each: each.debit_account, named),
        Field("to", "To", lambda each: each.credit_account, named),
        Field("amount", "Amount (credits)", lambda each: each.amount, AMOUNT),
        AGREEMENT,
        DEPOSIT,
        Field("order_id", "Order", lambda each: each.order_id, text=lambda each: short[each.order_id]),
        reference(trades, domain),
        Field("transfer_id", "", lambda each: each.transfer_id),
    )


@click.group(epilog=example("ramp bank overview", "ramp bank deposit alice 5000"))
def bank() -> None:
    """Show all accounts as the market's keeper, credit accounts, refund agreements, and audit the ledger.

    The keeper's agent signs overviews and deposits with the keeper's key, and the bank logs them. An audit reads the
    ledger itself.
    """


@bank.command(epilog=example("ramp bank overview", "ramp bank overview --since 2026-11-21 --json"))
@click.option("--since", type=moment_type, metavar="TIME", help="Start of the period (default: the beginning).")
@click.option("--until", type=moment_type, metavar="TIME", help="End of the period (default: now).")
@state_options
def overview(since: Instant | None, until: Instant | None, state: StateFolder) -> None:
    """Show every account and all payments, refunds and deposits.

    Deposits come from the account `market`. Its balance is minus the money in circulation, and its overdraft has no
    limit (--json: `overdraft` is null). --json gives the reason of a transfer as `agreement_id`, or `deposit_id` for
    deposits.
    """
    check_period(since, until)
    with waiting("asking the bank"):
        found = ask_keeper(state, dialogues.overview(since, until))
    domain = running(state).domain
    accounts, trades = _accounts(domain), _trades(found.trades, domain)
    shown = {
        "time": iso(found.bank_time),
        "accounts": [accounts.plain(account) for account in found.accounts],
        "trades": [trades.plain(trade) for trade in found.trades],
    }
    if printed_as_json(shown):
        return
    accounts.print_table(found.accounts, title="Accounts")
    if found.trades:
        trades.print_table(found.trades, title="Transfers")
    else:
        click.echo("No payments in this period")
    reserved = sum(account.reserved for account in found.accounts)
    print_line(
        f"{count_text(len(found.accounts), 'account')}, {count_text(len(found.trades), 'transfer')}, "
        f"{amount_text(reserved)} reserved at {moment_text(found.bank_time)}"
    )


@bank.command(
    context_settings={"ignore_unknown_options": True},  # so that -5 is an amount, and refused as one
    epilog=example("ramp bank deposit alice 5000", 'ramp bank deposit alice 99.50 --memo "project X"'),
)
@click.argument("account")
@click.argument("amount", metavar="CREDITS", type=credits_type)
@click.option("--memo", default="", metavar="TEXT", help="Note for the statement, one line.")
@click.option(
    "--id",
    "deposit_id",
    default="",
    metavar="ID",
    help="Reference; a deposit with the same reference is credited only once.",
)
@state_options
def deposit(account: str, amount: int, memo: str, deposit_id: str, state: StateFolder) -> None:
    """Credit an account out of the market's issuing account."""
    with waiting("asking the bank"):
        made = ask_keeper(state, dialogues.deposit(account, amount, memo, deposit_id))
    shown = {"deposit_id": made.deposit_id, "transfer_id": made.transfer_id, "account": account}
    if not printed_as_json({**shown, "amount": credits_decimal(made.amount)}):
        print_line(f"Deposit {made.deposit_id}: {amount_text(made.amount)} to {account}")


@bank.command(epilog=example('ramp bank refund agreement-1f0c9a5e --reason "the machine was down all night"'))
@click.argument("agreement", metavar="AGREEMENT")
@click.option("--reason", required=True, metavar="TEXT", help="Reason for the records of the bank, one line.")
@state_options
def refund(agreement: str, reason: str, state: StateFolder) -> None:
    """Refund what is left of an agreement's payments to its buyer, also after the slot.

    Use it where nobody could measure whether a slot was delivered. The seller loses what it was paid, less earlier
    refunds. The keeper's agent signs the order, and the bank logs it. To refund again changes nothing.
    """
    with waiting("asking the bank"):
        made = ask_keeper(state, dialogues.refund(agreement, reason))
    shown = {"agreement_id": made.agreement_id, "transfer_id": made.transfer_id, "reason": reason}
    if not printed_as_json({**shown, "refund": credits_decimal(made.refund)}):
        print_line(f"Agreement {made.agreement_id}: {amount_text(made.refund)} refunded")


@bank.command(epilog=example("ramp bank audit", "ramp bank audit --ledger postgresql://ramp@db/market --json"))
@click.option("--ledger", metavar="URL", help="URL of the ledger's database (default: the configuration's).")
@state_options
def audit(ledger: str | None, state: StateFolder) -> int:
    """Check every row of the bank's ledger, as the bank does at every start.

    This takes about a second for 20 000 orders; the market may be running. Exit code 1 if the audit finds a fault.
    """
    from ramp.doctor.examination import known_config
    from ramp.runtime.ledger.store import LedgerStore  # its imports take longer than other commands run

    config = known_config(status(state), state) if ledger is None else None
    location = ledger or (config.ledger if config is not None else "") or state.ledger
    if location == state.ledger and not state.ledger.exists():
        raise click.UsageError(f"ledger not found: {state.ledger}; give --state-dir, or --ledger of a database")
    with waiting("reading the ledger"), LedgerStore.open(location) as store:
        accounts = len(store.balances())
        findings = store.audit()
    if not printed_as_json({"accounts": accounts, "findings": findings}):
        for finding in findings:
            print_line(finding)
        click.echo(f"{count_text(accounts, 'account')}, {count_text(len(findings), 'finding')}")
    return 1 if findings else 0
