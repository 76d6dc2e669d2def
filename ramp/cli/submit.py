"""`ramp submit` and `ramp quote`: a request is auctioned, and bought or not."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from ramp.cli.auction_view import AuctionView, LineView, LiveView, QuietView
from ramp.cli.connection import Market, open_market
from ramp.cli.follow import Followed, nobody_approves
from ramp.cli.options import example, file_type, market_options
from ramp.cli.outcome_report import ShortName, offer_cost, outcome_object, print_outcome
from ramp.cli.output import moment_text, new_table, print_json, print_table, say
from ramp.errors import ConfigurationError
from ramp.model import money
from ramp.model.request import RequestForQuotation
from ramp.runtime.state_folder import StateFolder

EXIT_OF: Final = {"committed": 0, "quoted": 0}
"""Exit code by status; every other way to end is 1."""

_auction_options = (
    click.option("--rounds", type=click.IntRange(1, 100), default=3, show_default=True, help="Rounds of bidding."),
    click.option("--round-time", "round_time_s", type=click.FloatRange(min=0.1), default=15.0, show_default=True,
                 metavar="SECONDS", help="Limit of a round; it closes as soon as every answer is in."),
    click.option("--prefer", type=click.Choice(["cheapest", "soonest"]), default="cheapest", show_default=True,
                 help="How offers are ranked."),
)  # fmt: skip


def auction_options(command: Any) -> Any:
    """The options that `submit` and `quote` share."""
    for option in reversed(_auction_options):
        command = option(command)
    return command


@click.command(
    epilog=example(
        "ramp submit job.xml --rounds 5 --prefer soonest",
        "ramp submit first.xml second.xml --approve ask",
        "ramp submit job.xml --json | jq .units",
    )
)
@click.argument("files", nargs=-1, required=True, type=file_type, metavar="RFQ.xml...")
@auction_options
@click.option("--approve", type=click.Choice(["auto", "ask", "best-offer"]), default="auto", show_default=True,
              help="auto buys what meets the request; ask shows the offers first; best-offer also buys, unasked, the "
                   "best offer where none meets it.")  # fmt: skip
@market_options
@click.pass_context
def submit(
    ctx: click.Context,
    files: tuple[Path, ...],
    rounds: int,
    round_time_s: float,
    prefer: str,
    approve: str,
    user: str | None,
    state: StateFolder,
    as_json: bool,
) -> None:
    """Auction a request for quotation, buy what wins by two-phase commit, and pay.

    Several files make one request with all their units, in the order given: all are bought or none. `-` reads standard
    input. Ctrl-C or SIGTERM withdraws. Exit code 0: committed; 1: not bought; 2: bad input.
    """
    options = {"rounds": rounds, "round_time_s": round_time_s, "prefer": prefer, "approve": approve}
    if approve == "ask" and not sys.stdin.isatty():
        raise click.UsageError("--approve ask needs a terminal to ask at; auto and best-offer do not", ctx)
    ctx.exit(_auction(files, options, user, state, as_json))


@click.command(epilog=example("ramp quote job.xml"))
@click.argument("files", nargs=-1, required=True, type=file_type, metavar="RFQ.xml...")
@auction_options
@market_options
@click.pass_context
def quote(
    ctx: click.Context,
    files: tuple[Path, ...],
    rounds: int,
    round_time_s: float,
    prefer: str,
    user: str | None,
    state: StateFolder,
    as_json: bool,
) -> None:
    """Auction a request for quotation, but stop before accepting: nothing is bought, nothing is held.

    The object that --json prints is that of `ramp submit`, its status `quoted`. Exit code 0: every unit has an offer
    that meets the request; 1: some unit has none; 2: bad input.
    """
    options = {"rounds": rounds, "round_time_s": round_time_s, "prefer": prefer, "quote_only": True}
    ctx.exit(_auction(files, options, user, state, as_json))


def _auction(
    files: Sequence[Path], options: dict[str, Any], user: str | None, state: StateFolder, as_json: bool
) -> int:
    from ramp.rfql.request_for_quotation import write_request

    request = load_requests(files)
    for warning in request.warnings:
        say(f"ramp: warning: {warning}")
    market = open_market(state, user)
    view = new_view(market.short, as_json)
    approve = Approval(market.short) if options.get("approve") == "ask" else nobody_approves
    with _sigterm_withdraws(), view:
        event = Followed(market, write_request(request), options, view, approve).run()
    report(market, event, as_json)
    return EXIT_OF.get(event["outcome"]["status"], 1)


@contextlib.contextmanager
def _sigterm_withdraws() -> Iterator[None]:
    """Meanwhile a SIGTERM is what Ctrl-C is: whoever waits for a request that a batch system ends withdraws it."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def load_requests(files: Sequence[Path]) -> RequestForQuotation:
    """Read files as one request with all their units.

    Raises:
        DocumentError: naming the file.
    """
    from ramp.rfql.request_for_quotation import load_request, parse_request

    if len({str(path) for path in files}) < len(files):
        raise ConfigurationError("a file is given twice; copy it if its units are wanted twice")
    parts = [
        parse_request(sys.stdin.buffer.read(), "standard input") if str(path) == "-" else load_request(path)
        for path in files
    ]
    units = [unit for part in parts for unit in part.units]
    return RequestForQuotation(
        tuple(replace(unit, number=number) for number, unit in enumerate(units, 1)),
        tuple(f"{path}: {warning}" for path, part in zip(files, parts, strict=True) for warning in part.warnings),
    )


def new_view(short: ShortName, as_json: bool) -> AuctionView:
    """The view that suits where the output goes."""
    if as_json:
        return LiveView(short, error=True) if sys.stderr.isatty() else QuietView()
    return LiveView(short) if sys.stdout.isatty() else LineView(short)


def report(market: Market, event: Mapping[str, Any], as_json: bool) -> None:
    """Print how a request ended."""
    if as_json:
        print_json(outcome_object(event["outcome"], event["agreements"], market.short))
    else:
        print_outcome(event["outcome"], event["agreements"], market.short)
        if event["outcome"]["status"] == "committed":
            say(f"`ramp show {event['outcome']['request_id']} --as sbatch` prints how to launch on what was bought")


class Approval:
    """Asks the owner at the terminal, on standard error so that results stay clean.

    Args:
        short: makes agents' names short.
    """

    def __init__(self, short: ShortName) -> None:
        self._short = short

    def __call__(self, offers: Sequence[Mapping[str, Any]], meets: Sequence[bool]) -> bool:
        """Show the offers and ask."""
        table = new_table(
            "Unit", "Resource", "Start", "End", "Cores", "Price", "Cost", "Meets request",
            right=("Unit", "Cores", "Price", "Cost"), title="Offers (price in credits/core-hour, cost in credits)",
        )  # fmt: skip
        for offer, meets_request in zip(offers, meets, strict=True):
            table.add_row(
                str(offer["unit"]),
                self._short(offer["resource"]),
                moment_text(offer["start"]),
                moment_text(offer["end"]),
                str(offer["cores"]),
                str(offer["cpu_hour_cost"]),
                money.credits_text(offer_cost(offer)),
                "yes" if meets_request else "no",
            )
        print_table(table, error=True)
        total = money.credits_text(sum(offer_cost(offer) for offer in offers))
        try:
            return click.confirm(f"Buy for {total} credits?", default=False, err=True)
        except click.Abort:
            say("")
            return False
