"""`ramp bank`: overview and deposits of the market's keeper (paper section 6.3), and the audit of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import click

from ramp.cli.options import CreditsType, example, json_option, state_option
from ramp.cli.time_arguments import MomentType
from ramp.cli.views.output import (
    amount_json,
    amount_text,
    count_text,
    moment_text,
    print_json,
    print_line,
    print_rows,
    waiting,
)
from ramp.cli.views.postings import FOR, reference_object, reference_texts
from ramp.client import dialogues, portal
from ramp.client.access import market_domain, running
from ramp.client.dialogues import Dialogue
from ramp.client.identifiers import shortened
from ramp.client.results import short_name
from ramp.client.swarm import status
from ramp.model.contents import AccountLine, TradeLine
from ramp.model.instant import Instant, iso
from ramp.model.money import credits_text
from ramp.runtime.state_folder import StateFolder

T = TypeVar("T")


@click.group(epilog=example("ramp bank overview", "ramp bank deposit alice 5000"))
def bank() -> None:
    """Show all accounts as the market's keeper, credit accounts, refund agreements, and audit the ledger.

    The keeper's agent signs overviews and deposits with the keeper's key, and the bank logs them. An audit reads the
    ledger itself.
    """


@bank.command(epilog=example("ramp bank overview", "ramp bank overview --since 2026-11-21 --json"))
@click.option("--since", type=MomentType(), metavar="TIME", help="Start of the period (default: the beginning).")
@click.option("--until", type=MomentType(), metavar="TIME", help="End of the period (default: now).")
@state_option
@json_option
def overview(since: Instant | None, until: Instant | None, state: StateFolder, as_json: bool) -> None:
    """Show every account and all payments, refunds and deposits.

    Deposits come from the account `market`. Its balance is minus the money in circulation, and its overdraft has no
    limit (--json: `overdraft` is null). --json gives the reason of a transfer as `agreement_id`, or `deposit_id` for
    deposits.
    """
    if since is not None and until is not None and since > until:
        raise click.UsageError(f"--since must be before --until: got {moment_text(since)} and {moment_text(until)}")
    found = ask_keeper(state, dialogues.overview(since, until))
    if as_json:
        print_json(
            {
                "time": iso(found.bank_time),
                "accounts": [_account_object(account) for account in found.accounts],
                "trades": [_trade_object(trade) for trade in found.trades],
            }
        )
        return
    domain = market_domain(state, running(state))
    _print_accounts(found.accounts, domain)
    _print_trades(found.trades, domain)
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
@click.argument("amount", metavar="CREDITS", type=CreditsType())
@click.option("--memo", default="", metavar="TEXT", help="Note for the statement, one line.")
@click.option(
    "--id",
    "deposit_id",
    default="",
    metavar="ID",
    help="Reference; a deposit with the same reference is credited only once.",
)
@state_option
@json_option
def deposit(account: str, amount: int, memo: str, deposit_id: str, state: StateFolder, as_json: bool) -> None:
    """Credit an account out of the market's issuing account."""
    made = ask_keeper(state, dialogues.deposit(account, amount, memo, deposit_id))
    if as_json:
        print_json(
            {
                "deposit_id": made.deposit_id,
                "transfer_id": made.transfer_id,
                "account": account,
                "amount": amount_json(made.amount),
            }
        )
    else:
        print_line(f"Deposit {made.deposit_id}: {amount_text(made.amount)} to {account}")


@bank.command(epilog=example('ramp bank refund agreement-1f0c9a5e --reason "the machine was down all night"'))
@click.argument("agreement", metavar="AGREEMENT")
@click.option("--reason", required=True, metavar="TEXT", help="Reason for the records of the bank, one line.")
@state_option
@json_option
def refund(agreement: str, reason: str, state: StateFolder, as_json: bool) -> None:
    """Refund what is left of an agreement's payments to its buyer, also after the slot.

    Use it where nobody could measure whether a slot was delivered. The seller loses what it was paid, less earlier
    refunds. The keeper's agent signs the order, and the bank logs it. To refund again changes nothing.
    """
    made = ask_keeper(state, dialogues.refund(agreement, reason))
    if as_json:
        found = {"agreement_id": made.agreement_id, "transfer_id": made.transfer_id, "reason": reason}
        print_json({**found, "refund": amount_json(made.refund)})
    else:
        print_line(f"Agreement {made.agreement_id}: {amount_text(made.refund)} refunded")


@bank.command(epilog=example("ramp bank audit", "ramp bank audit --ledger postgresql://ramp@db/market --json"))
@click.option("--ledger", metavar="URL", help="URL of the ledger's database (default: the configuration's).")
@state_option
@json_option
@click.pass_context
def audit(ctx: click.Context, ledger: str | None, state: StateFolder, as_json: bool) -> None:
    """Check every row of the bank's ledger, as the bank does at every start.

    This takes about a second for 20 000 orders; the market may be running. Exit code 1 if the audit finds a fault.
    """
    from ramp.doctor.examination import known_config
    from ramp.runtime.ledger.store import LedgerStore  # its imports take longer than other commands run

    config = known_config(status(state), state) if ledger is None else None
    location = ledger or (config.ledger_url if config is not None else "") or state.ledger
    if location == state.ledger and not state.ledger.exists():
        raise click.UsageError(f"ledger not found: {state.ledger}; give --state-dir, or --ledger of a database")
    with waiting("reading the ledger"), LedgerStore.open(location) as store:
        accounts = len(store.balances())
        findings = store.audit()
    if as_json:
        print_json({"accounts": accounts, "findings": findings})
    else:
        for finding in findings:
            print_line(finding)
        click.echo(f"{count_text(accounts, 'account')}, {count_text(len(findings), 'finding')}")
    ctx.exit(1 if findings else 0)


def ask_keeper(state: StateFolder, dialogue: Dialogue[T]) -> T:
    """Hold a dialogue with the agent of the running market's keeper."""
    (keeper,) = running(state).names("keeper")
    with waiting("asking the bank"):
        return portal.ask(state.socket(keeper), dialogue)


def _account_object(account: AccountLine) -> dict[str, object]:
    return {
        "account": account.account,
        "kind": account.kind,
        "balance": amount_json(account.balance),
        "reserved": amount_json(account.reserved),
        "overdraft": amount_json(account.credit_limit) if account.is_limited else None,
    }


def _trade_object(trade: TradeLine) -> dict[str, object]:
    return {
        "time": iso(trade.posted_at),
        "kind": trade.kind,
        "from": trade.debit_account,
        "to": trade.credit_account,
        "amount": amount_json(trade.amount),
        **reference_object(trade),
        "order_id": trade.order_id,
        "transfer_id": trade.transfer_id,
    }


def _print_accounts(accounts: Sequence[AccountLine], domain: str) -> None:
    columns = ("Account", "Kind", "Balance (credits)", "Reserved (credits)", "Overdraft (credits)")
    rows = [
        (
            short_name(each.account, domain),
            each.kind,
            credits_text(each.balance),
            credits_text(each.reserved),
            credits_text(each.credit_limit) if each.is_limited else "no limit",
        )
        for each in accounts
    ]
    print_rows(columns, rows, right=columns[2:], title="Accounts")


def _print_trades(trades: Sequence[TradeLine], domain: str) -> None:
    if not trades:
        click.echo("No payments in this period")
        return
    short = shortened([trade.order_id for trade in trades])
    columns = ("Time", "Kind", "From", "To", "Amount (credits)", "Order", FOR)
    rows = [
        (
            moment_text(trade.posted_at),
            trade.kind,
            short_name(trade.debit_account, domain),
            short_name(trade.credit_account, domain),
            credits_text(trade.amount),
            short[trade.order_id],
            reference,
        )
        for trade, reference in zip(trades, reference_texts(trades, domain), strict=True)
    ]
    print_rows(columns, rows, right=("Amount (credits)",), title="Transfers")
