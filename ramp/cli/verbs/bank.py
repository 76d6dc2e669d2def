"""`ramp bank`: overview and deposits of the market's keeper (paper section 6.3), and the audit of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from ramp.cli.options import check_period, credits_type, example, moment_type, state_options
from ramp.cli.verbs.account import AGREEMENT, DEPOSIT, reference
from ramp.cli.views.fields import AMOUNT, MOMENT, Field, Fields, address
from ramp.cli.views.output import (
    amount_json,
    amount_text,
    count_text,
    moment_text,
    print_json,
    print_line,
    waiting,
)
from ramp.client import dialogues
from ramp.client.access import running
from ramp.client.connecting import ask_keeper
from ramp.client.identifiers import shortened
from ramp.client.results import short_name
from ramp.client.swarm import status
from ramp.model.contents import AccountLine, TradeLine
from ramp.model.instant import Instant, iso
from ramp.model.money import credits_text
from ramp.runtime.state_folder import StateFolder


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
def overview(since: Instant | None, until: Instant | None, state: StateFolder, as_json: bool) -> None:
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
    if as_json:
        shown = {
            "accounts": [accounts.plain(account) for account in found.accounts],
            "trades": [trades.plain(trade) for trade in found.trades],
        }
        print_json({"time": iso(found.bank_time), **shown})
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
def deposit(account: str, amount: int, memo: str, deposit_id: str, state: StateFolder, as_json: bool) -> None:
    """Credit an account out of the market's issuing account."""
    with waiting("asking the bank"):
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
@state_options
def refund(agreement: str, reason: str, state: StateFolder, as_json: bool) -> None:
    """Refund what is left of an agreement's payments to its buyer, also after the slot.

    Use it where nobody could measure whether a slot was delivered. The seller loses what it was paid, less earlier
    refunds. The keeper's agent signs the order, and the bank logs it. To refund again changes nothing.
    """
    with waiting("asking the bank"):
        made = ask_keeper(state, dialogues.refund(agreement, reason))
    if as_json:
        found = {"agreement_id": made.agreement_id, "transfer_id": made.transfer_id, "reason": reason}
        print_json({**found, "refund": amount_json(made.refund)})
    else:
        print_line(f"Agreement {made.agreement_id}: {amount_text(made.refund)} refunded")


@bank.command(epilog=example("ramp bank audit", "ramp bank audit --ledger postgresql://ramp@db/market --json"))
@click.option("--ledger", metavar="URL", help="URL of the ledger's database (default: the configuration's).")
@state_options
def audit(ledger: str | None, state: StateFolder, as_json: bool) -> int:
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
    if as_json:
        print_json({"accounts": accounts, "findings": findings})
    else:
        for finding in findings:
            print_line(finding)
        click.echo(f"{count_text(accounts, 'account')}, {count_text(len(findings), 'finding')}")
    return 1 if findings else 0
