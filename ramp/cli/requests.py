"""`ramp status`, `reservations`, `show` and `cancel`: what one has asked for and bought."""

from __future__ import annotations

from typing import Any, Final

import click

from ramp.cli.agreement_report import agreement_object, print_agreement
from ramp.cli.connection import Market, open_market
from ramp.cli.launch_snippets import SNIPPETS, snippet
from ramp.cli.options import example, market_options
from ramp.cli.outcome_report import outcome_cost, outcome_object, print_outcome
from ramp.cli.output import (
    amount_json,
    amount_text,
    count_text,
    duration_text,
    moment_text,
    new_table,
    print_json,
    print_table,
    say,
)
from ramp.errors import ConfigurationError
from ramp.model import money
from ramp.model.instant import iso, seconds
from ramp.runtime.state_folder import StateFolder

OPEN_STATES: Final = ("settling", "active", "cancelling")
"""States of agreements that still mean something; the others are history."""


@click.command(epilog=example("ramp status", "ramp status request-1f0c9a5e7b3d2c4a6f8e0d1b --json"))
@click.argument("request_id", required=False)
@market_options
def status(request_id: str | None, user: str | None, state: StateFolder, as_json: bool) -> None:
    """Show all requests, or one in full.

    A request that is going on has the status `running`; otherwise it is committed, quoted, no_offers, withdrawn,
    rejected or failed. An id may be cut short as long as it is unique.
    """
    market = open_market(state, user)
    listed = _requests(market)
    if request_id is not None:
        _show_request(market, _one(listed, "request", request_id), as_json)
        return
    objects = [_request_summary(entry) for entry in listed]
    if as_json:
        print_json(objects)
        return
    if not objects:
        click.echo(f"{market.user} has asked for nothing yet")
        return
    table = new_table("Request", "Status", "Units", "Submitted", "Took", "Cost (credits)", "Reason",
                      right=("Units", "Took", "Cost (credits)"))  # fmt: skip
    for entry, summary in zip(listed, objects, strict=True):
        outcome = entry["outcome"]
        table.add_row(
            entry["request_id"],
            summary["status"] if outcome is not None else f"running ({entry['stage']})",
            str(entry["units"]),
            moment_text(entry["started_at"]),
            "" if outcome is None else duration_text(outcome["duration"]),
            "" if outcome is None else money.credits_text(outcome_cost(outcome)),
            summary["reason"],
        )
    print_table(table)


@click.command(epilog=example("ramp reservations", "ramp reservations --all --json"))
@click.option("--all", "show_all", is_flag=True, help="Also those that were cancelled or undone.")
@market_options
def reservations(show_all: bool, user: str | None, state: StateFolder, as_json: bool) -> None:
    """Show what has been bought: machine, slot, price, and the ids to use it by."""
    market = open_market(state, user)
    entries = [entry for entry in _agreements(market) if show_all or entry["state"] in OPEN_STATES]
    entries.sort(key=lambda entry: (entry["agreement"]["offer"]["start"], entry["agreement"]["agreement_id"]))
    if as_json:
        print_json([agreement_object(entry, market.short) for entry in entries])
        return
    if not entries:
        click.echo(f"{market.user} has no reservations{'' if show_all else ' (--all shows past ones)'}")
        return
    table = new_table("Reservation", "State", "Resource", "Start", "End", "Cores", "Cost (credits)", "Agreement",
                      right=("Cores", "Cost (credits)"))  # fmt: skip
    for entry in entries:
        agreement = entry["agreement"]
        offer = agreement["offer"]
        table.add_row(
            agreement["reservation_id"],
            entry["state"],
            market.short(agreement["resource"]),
            moment_text(offer["start"]),
            moment_text(offer["end"]),
            str(offer["cores"]),
            money.credits_text(agreement["cost"]),
            agreement["agreement_id"],
        )
    print_table(table)


@click.command(epilog=example("ramp show agreement-1f0c9a5e7b3d2c4a6f8e0d1b", "ramp show thunder1.7 --as sbatch"))
@click.argument("any_id", metavar="ID")
@click.option(
    "--as", "style", type=click.Choice(sorted(SNIPPETS)), help="Print how to launch on it, for this batch system."
)
@market_options
def show(any_id: str, style: str | None, user: str | None, state: StateFolder, as_json: bool) -> None:
    """Show a request, an agreement or a reservation in full.

    --as prints a snippet for using the reservation instead: sbatch (Slurm), qsub (Grid Engine, PBS), psij (PSI/J for
    Python), mpirun (a script for Blue Gene/L), env (environment variables). An id may be cut short as long as it is
    unique.
    """
    market = open_market(state, user)
    if style is not None and as_json:
        raise click.UsageError("--as prints a snippet, so it does not go with --json")
    entries = _belonging(market, any_id)
    if style is not None:
        if not entries:
            raise ConfigurationError(
                f"{any_id}: nothing has been bought under this id, so there is nothing to launch on"
            )
        click.echo("\n\n".join(snippet(style, entry["agreement"], market.short) for entry in entries))
        return
    request = _match(_requests(market), "request_id", any_id)
    if len(request) == 1:
        _show_request(market, request[0], as_json)
        return
    if as_json:
        print_json(agreement_object(entries[0], market.short))
    else:
        print_agreement(entries[0], market.short)


@click.command(epilog=example('ramp cancel agreement-1f0c9a5e7b3d2c4a6f8e0d1b --reason "no longer needed"'))
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", default="", metavar="TEXT", help="For the resource and the bank to keep.")
@market_options
@click.pass_context
def cancel(
    ctx: click.Context, ids: tuple[str, ...], reason: str, user: str | None, state: StateFolder, as_json: bool
) -> None:
    """Give reservations back for a refund; withdraw a request that is going on.

    ID is an agreement, a reservation, or a request: then everything it bought is given back. Resource and bank are
    told; the money comes back before the verb ends. Exit code 1 if anything could not be cancelled.
    """
    market = open_market(state, user)
    results = [result for any_id in ids for result in _cancel(market, any_id, reason)]
    if as_json:
        print_json(results)
    else:
        for result in results:
            if result["withdrawn"]:
                click.echo(f"Request {result['request_id']}: withdrawn")
            elif result["cancelled"]:
                refund = amount_text(round(result["refund"] * money.MINOR_UNITS_PER_CREDIT))
                click.echo(f"Agreement {result['agreement_id']}: cancelled, {refund} refunded")
            else:
                say(f"ramp: agreement {result['agreement_id']}: not cancelled: {result['detail'] or result['code']}")
    ctx.exit(0 if all(result["cancelled"] or result["withdrawn"] for result in results) else 1)


def _cancel(market: Market, any_id: str, reason: str) -> list[dict[str, Any]]:
    running = [entry for entry in _match(_requests(market), "request_id", any_id) if entry["outcome"] is None]
    if len(running) == 1:
        request_id = running[0]["request_id"]
        market.ask({"verb": "withdraw", "request_id": request_id}, f"withdrawing {request_id}")
        return [_cancellation(request_id, withdrawn=True)]
    entries = _belonging(market, any_id)
    if not entries:
        raise ConfigurationError(f"{any_id}: this request has ended without buying anything")
    if len(entries) > 1:
        entries = [entry for entry in entries if entry["state"] in OPEN_STATES] or entries
    results = []
    for entry in entries:
        agreement_id = entry["agreement"]["agreement_id"]
        event = market.ask(
            {"verb": "cancel", "agreement_id": agreement_id, "reason": reason}, f"cancelling {agreement_id}"
        )
        outcome = event["outcome"]
        results.append(
            _cancellation(
                entry["agreement"]["request_id"],
                agreement_id=agreement_id,
                cancelled=outcome["done"],
                refund=amount_json(outcome["refund"]),
                code=outcome["code"],
                detail=outcome["detail"],
            )
        )
    return results


def _cancellation(
    request_id: str,
    *,
    agreement_id: str = "",
    withdrawn: bool = False,
    cancelled: bool = False,
    refund: float = 0.0,
    code: str = "",
    detail: str = "",
) -> dict[str, Any]:
    return {
        "request_id": request_id,
        "agreement_id": agreement_id,
        "cancelled": cancelled,
        "withdrawn": withdrawn,
        "refund": refund,
        "code": code,
        "detail": detail,
    }


def _requests(market: Market) -> list[dict[str, Any]]:
    answer = market.ask({"verb": "requests"}, "asking the User Agent")
    listed: list[dict[str, Any]] = answer["requests"]
    return listed


def _agreements(market: Market) -> list[dict[str, Any]]:
    answer = market.ask({"verb": "agreements"}, "asking the User Agent")
    listed: list[dict[str, Any]] = answer["agreements"]
    return listed


def _match(entries: list[dict[str, Any]], key: str, any_id: str) -> list[dict[str, Any]]:
    """Entries whose id is this one, or begins with it where none is."""
    exact = [entry for entry in entries if entry[key] == any_id]
    return exact or [entry for entry in entries if any_id and entry[key].startswith(any_id)]


def _one(entries: list[dict[str, Any]], what: str, any_id: str) -> dict[str, Any]:
    found = _match(entries, f"{what}_id", any_id)
    if len(found) != 1:
        raise _not_one(f"{what} {any_id!r}", len(found))
    return found[0]


def _not_one(what: str, number: int) -> ConfigurationError:
    if number == 0:
        return ConfigurationError(f"there is no {what}; `ramp status` and `ramp reservations --all` list all")
    return ConfigurationError(f"{what} is the beginning of {number} ids; give more of it")


def _belonging(market: Market, any_id: str) -> list[dict[str, Any]]:
    """Agreements that an id means: one by its own or its reservation's id, all of a request by the request's.

    Raises:
        ConfigurationError: if the id means nothing, or several things.
    """
    entries = _agreements(market)
    keyed = [
        {"entry": entry, **{key: entry["agreement"][key] for key in ("agreement_id", "reservation_id")}}
        for entry in entries
    ]
    found = _match(keyed, "agreement_id", any_id) or _match(keyed, "reservation_id", any_id)
    if len(found) == 1:
        only: dict[str, Any] = found[0]["entry"]
        return [only]
    requests = _match(_requests(market), "request_id", any_id)
    if len(found) + len(requests) != 1:
        raise _not_one(f"request, agreement or reservation {any_id!r}", len(found) + len(requests))
    return [entry for entry in entries if entry["agreement"]["request_id"] == requests[0]["request_id"]]


def _request_summary(entry: dict[str, Any]) -> dict[str, Any]:
    outcome = entry["outcome"]
    return {
        "request_id": entry["request_id"],
        "status": "running" if outcome is None else outcome["status"],
        "stage": entry["stage"],
        "reason": "" if outcome is None else outcome["reason"],
        "units": entry["units"],
        "started_at": iso(entry["started_at"]),
        "duration_s": None if outcome is None else seconds(outcome["duration"]),
        "cost": None if outcome is None else amount_json(outcome_cost(outcome)),
    }


def _show_request(market: Market, entry: dict[str, Any], as_json: bool) -> None:
    outcome = entry["outcome"]
    if outcome is None:
        summary = _request_summary(entry)
        if as_json:
            print_json(summary)
        else:
            units = count_text(entry["units"], "unit")
            click.echo(
                f"Request {entry['request_id']}: running ({entry['stage']}), {units}, since {summary['started_at']}"
            )
        return
    files = {
        agreement["agreement"]["agreement_id"]: agreement["file"]
        for agreement in _agreements(market)
        if agreement["agreement"]["request_id"] == entry["request_id"]
    }
    if as_json:
        print_json(outcome_object(outcome, files, market.short))
    else:
        print_outcome(outcome, files, market.short)
