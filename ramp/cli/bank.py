"""`ramp bank overview` and `ramp bank deposit`: what the market's keeper sees and orders (paper section 6.3)."""

from __future__ import annotations

from typing import Any

import click

from ramp.agents.supervise import status
from ramp.cli.connection import checked
from ramp.cli.moments import MomentType
from ramp.cli.options import example, json_option, state_option
from ramp.cli.output import (
    amount_json,
    amount_text,
    count_text,
    moment_text,
    new_table,
    print_json,
    print_table,
    waiting,
)
from ramp.errors import TransportError
from ramp.model.instant import Instant, iso
from ramp.model.money import credits_text, parse_credits
from ramp.runtime.control_client import ControlClient
from ramp.runtime.state_folder import StateFolder


@click.group(epilog=example("ramp bank overview", "ramp bank deposit alice 5000"))
def bank() -> None:
    """See all trading and credit accounts, as the market's keeper.

    These are orders that the keeper's agent seals with the keeper's key; the bank logs them and keeps them.
    """


@bank.command(epilog=example("ramp bank overview", "ramp bank overview --since 2026-11-21 --json"))
@click.option("--since", type=MomentType(), metavar="TIME", help="First moment (default: the beginning).")
@click.option("--until", type=MomentType(), metavar="TIME", help="Last moment (default: now).")
@state_option
@json_option
def overview(since: Instant | None, until: Instant | None, state: StateFolder, as_json: bool) -> None:
    """Show every account and everything that was paid, refunded and deposited."""
    if since is not None and until is not None and since > until:
        raise click.UsageError(f"--since {iso(since)} lies after --until {iso(until)}")
    request: dict[str, Any] = {"verb": "overview"}
    request |= {key: iso(moment) for key, moment in (("since", since), ("until", until)) if moment is not None}
    found = ask_keeper(state, request)["answer"]
    if as_json:
        print_json(
            {
                "time": iso(found["bank_time"]),
                "accounts": [_account_object(account) for account in found["accounts"]],
                "trades": [_trade_object(trade) for trade in found["trades"]],
            }
        )
        return
    _print_accounts(found["accounts"])
    _print_trades(found["trades"])
    reserved = sum(account["reserved"] for account in found["accounts"])
    click.echo(
        f"{count_text(len(found['accounts']), 'account')}, {count_text(len(found['trades']), 'transfer')}, "
        f"{amount_text(reserved)} set aside at {moment_text(found['bank_time'])}"
    )


@bank.command(epilog=example("ramp bank deposit alice 5000", 'ramp bank deposit alice 99.50 --memo "project X"'))
@click.argument("account")
@click.argument("credits_", metavar="CREDITS")
@click.option("--memo", default="", metavar="TEXT", help="One line for the statement.")
@click.option("--id", "deposit_id", default="", metavar="ID", help="Reference; the same one is credited only once.")
@state_option
@json_option
def deposit(account: str, credits_: str, memo: str, deposit_id: str, state: StateFolder, as_json: bool) -> None:
    """Credit an account out of the market's issuing account."""
    try:
        amount = parse_credits(credits_)
    except ValueError as error:
        raise click.UsageError(f"CREDITS {credits_!r}: {error}") from error
    if amount <= 0:
        raise click.UsageError(f"CREDITS {credits_!r}: a deposit is above 0")
    request = {"verb": "deposit", "account": account, "amount": amount, "memo": memo, "deposit_id": deposit_id}
    made = ask_keeper(state, request)["answer"]
    if as_json:
        print_json(
            {
                "deposit_id": made["deposit_id"],
                "transfer_id": made["transfer_id"],
                "account": account,
                "amount": amount_json(made["amount"]),
            }
        )
    else:
        click.echo(f"Deposit {made['deposit_id']}: {amount_text(made['amount'])} to {account}")


def ask_keeper(state: StateFolder, request: dict[str, Any]) -> dict[str, Any]:
    """The last event of a request to the keeper's agent.

    Args:
        state: state folder of the running market.
        request: the verb with its arguments.

    Raises:
        TransportError: if no market runs there, or the bank refuses.
    """
    found = status(state)
    if found is None:
        raise TransportError(f"no market is running with the state folder {state.path}; `ramp up` launches one")
    keeper = next(agent["name"] for agent in found["agents"] if agent["role"] == "keeper")
    with waiting("asking the bank"), ControlClient(state.socket(keeper)) as client:
        return checked(client.answer(request))


def _account_object(account: dict[str, Any]) -> dict[str, Any]:
    return {
        "account": account["account"],
        "kind": account["kind"],
        "balance": amount_json(account["balance"]),
        "reserved": amount_json(account["reserved"]),
        "credit_limit": amount_json(account["credit_limit"]),
    }


def _trade_object(trade: dict[str, Any]) -> dict[str, Any]:
    return {
        "time": iso(trade["posted_at"]),
        "kind": trade["kind"],
        "from": trade["debit_account"],
        "to": trade["credit_account"],
        "amount": amount_json(trade["amount"]),
        "agreement_id": trade["agreement_id"],
        "order_id": trade["order_id"],
        "transfer_id": trade["transfer_id"],
    }


def _print_accounts(accounts: list[dict[str, Any]]) -> None:
    table = new_table("Account", "Kind", "Balance (credits)", "Set aside (credits)", "Overdraft (credits)",
                      right=("Balance (credits)", "Set aside (credits)", "Overdraft (credits)"))  # fmt: skip
    for account in accounts:
        amounts = (credits_text(account[key]) for key in ("balance", "reserved", "credit_limit"))
        table.add_row(account["account"], account["kind"], *amounts)
    print_table(table)


def _print_trades(trades: list[dict[str, Any]]) -> None:
    if not trades:
        click.echo("Nothing was posted in that time")
        return
    table = new_table("Time", "Kind", "From", "To", "Amount (credits)", "Order", "Agreement",
                      right=("Amount (credits)",))  # fmt: skip
    for trade in trades:
        table.add_row(
            moment_text(trade["posted_at"]),
            trade["kind"],
            trade["debit_account"],
            trade["credit_account"],
            credits_text(trade["amount"]),
            trade["order_id"],
            trade["agreement_id"],
        )
    print_table(table)
