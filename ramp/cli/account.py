"""`ramp balance` and `ramp statement`: signed queries to the bank about one's own account."""

from __future__ import annotations

from typing import Any

import click

from ramp.cli.connection import Market, open_market
from ramp.cli.moments import MomentType
from ramp.cli.options import example, market_options
from ramp.cli.output import amount_json, amount_text, moment_text, new_table, print_json, print_pairs, print_table
from ramp.model.instant import Instant, iso
from ramp.model.money import credits_text
from ramp.runtime.state_folder import StateFolder


def ask_account(market: Market, since: Instant | None = None, until: Instant | None = None) -> dict[str, Any]:
    """The bank's answer to a signed account query; amounts in minor units.

    Args:
        market: the market, as the account's owner.
        since: first instant of the lines, None for no lines.
        until: last instant of the lines, None for the present one.
    """
    request: dict[str, Any] = {"verb": "account"}
    if since is not None:
        request["since"] = iso(since)
    if until is not None:
        request["until"] = iso(until)
    answer: dict[str, Any] = market.ask(request, "asking the bank")["answer"]
    return answer


def account_object(answer: dict[str, Any]) -> dict[str, Any]:
    """A balance for JSON, in credits."""
    return {
        "account": answer["account"],
        "balance": amount_json(answer["balance"]),
        "reserved": amount_json(answer["reserved"]),
        "credit_limit": amount_json(answer["credit_limit"]),
        "available": amount_json(available(answer)),
        "time": iso(answer["bank_time"]),
    }


def available(answer: dict[str, Any]) -> int:
    """What can be spent, in minor units: balance and overdraft without what is reserved."""
    left: int = answer["balance"] + answer["credit_limit"] - answer["reserved"]
    return left


@click.command(epilog=example("ramp balance --user bob"))
@market_options
def balance(user: str | None, state: StateFolder, as_json: bool) -> None:
    """Show the balance of one's account: the bank answers a query signed with one's own key."""
    answer = ask_account(open_market(state, user))
    if as_json:
        print_json(account_object(answer))
        return
    print_pairs(
        (
            ("Account", answer["account"]),
            ("Balance", amount_text(answer["balance"])),
            ("Reserved", amount_text(answer["reserved"])),
            ("Overdraft", amount_text(answer["credit_limit"])),
            ("Available", amount_text(available(answer))),
            ("At", moment_text(answer["bank_time"])),
        )
    )


@click.command(epilog=example("ramp statement --since 2026-11-21 --until now"))
@click.option("--since", type=MomentType(), metavar="TIME", help="First moment (default: the beginning).")
@click.option("--until", type=MomentType(), metavar="TIME", help="Last moment (default: now).")
@market_options
def statement(
    since: Instant | None, until: Instant | None, user: str | None, state: StateFolder, as_json: bool
) -> None:
    """Show every payment and refund with the balance after it."""
    if since is not None and until is not None and since > until:
        raise click.UsageError(f"--since {iso(since)} lies after --until {iso(until)}")
    answer = ask_account(open_market(state, user), 0 if since is None else since, until)
    if as_json:
        print_json({**account_object(answer), "lines": [_line_object(line) for line in answer["lines"]]})
        return
    if answer["lines"]:
        table = new_table("Time", "Kind", "With", "Amount (credits)", "Balance (credits)", "Agreement", "Transfer",
                          right=("Amount (credits)", "Balance (credits)"))  # fmt: skip
        for line in answer["lines"]:
            table.add_row(
                moment_text(line["posted_at"]),
                line["kind"],
                line["counterparty"],
                credits_text(line["amount"]),
                credits_text(line["balance"]),
                line["agreement_id"],
                line["transfer_id"],
            )
        print_table(table)
    else:
        click.echo("Nothing was posted in that time")
    click.echo(
        f"Balance of {answer['account']}: {amount_text(answer['balance'])} at {moment_text(answer['bank_time'])}"
    )


def _line_object(line: dict[str, Any]) -> dict[str, Any]:
    return {
        "time": iso(line["posted_at"]),
        "kind": line["kind"],
        "counterparty": line["counterparty"],
        "agreement_id": line["agreement_id"],
        "transfer_id": line["transfer_id"],
        "amount": amount_json(line["amount"]),
        "balance": amount_json(line["balance"]),
    }
