"""`ramp submit` and `ramp quote`: a request is auctioned, and bought or not."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from ramp.cli.connection import interrupted_by, open_market
from ramp.cli.options import (
    ReadAs,
    WholeNumber,
    credits_type,
    duration_type,
    example,
    file_type,
    market_options,
    site_option,
    start_probability_option,
    together,
    within,
)
from ramp.cli.views.auction_view import AuctionView, LineView, LiveView, unless_closed
from ramp.cli.views.fields import AMOUNT, NUMBER, Field, Fields
from ramp.cli.views.output import amount_text, printed_as_json, say, wants_json
from ramp.cli.views.reports import UNIT, ShortName, outcome_object, print_outcome, slot_fields
from ramp.client.identifiers import one_request
from ramp.client.market import Market
from ramp.client.request import combined, named_sites
from ramp.client.submission import ROUND_TIME, ROUNDS, Approver, fixed_rule, nobody_approves, submission
from ramp.control.events import Event
from ramp.errors import ConfigurationError
from ramp.model.instant import Duration
from ramp.model.offer import Offer
from ramp.model.request import RequestForQuotation
from ramp.model.sizes.moldable import as_offered
from ramp.protocol.clock_comparison import offset_text
from ramp.protocol.events import Approval, AuctionOptions, Preference
from ramp.protocol.outcome import BoughtUnit, RequestStatus
from ramp.protocol.progress import ApprovalAsked, ClockCompared, RequestEnded
from ramp.runtime.state_folder import StateFolder

EXIT_OF: Final = {RequestStatus.COMMITTED: 0, RequestStatus.QUOTED: 0}
"""Exit code by status; every other way to end is 1."""

PENDING_LIMIT_S: Final = 3.0
"""Time limit in seconds for the state of a request after a second Ctrl-C."""

TERMINATED_LIMIT_S: Final = 2.0
"""Time limit in seconds for the end of a request after SIGTERM; a bank without its database cannot end one."""

auction_options: Final = together(
    click.option("--rounds", type=WholeNumber(1, 100), default=ROUNDS, show_default=True,
                 help="Number of bidding rounds."),
    click.option("--round-time", type=duration_type, default=f"{ROUND_TIME.total_seconds():g}s",
                 show_default=True, metavar="TIME",
                 help="Time limit of a round, in seconds or with a unit; it ends early after all answers."),
    click.option("--prefer", type=click.Choice([each.value for each in Preference]), default="cheapest",
                 show_default=True, help="Ranking of offers."),
    click.option("--rule", default="", metavar="NAME",
                 help="Auction rule (`ramp plugins list rule`), or FILE.py:NAME  [default: the market's own]."),
    click.option("--name", default="", metavar="TEXT", help="Your own name for the request; sellers do not see it."),
    start_probability_option,
    site_option,
)  # fmt: skip
"""The options that `submit` and `quote` share."""


@click.command(
    epilog=example(
        "ramp submit job.xml --rounds 5 --prefer soonest",
        'ramp submit job.xml --max-cost 5000 --name "run 7"',
        "ramp submit job.xml --rule second-price",
        "ramp submit job.xml --start-probability .95",
        "ramp submit job.xml --site west.example",
        "ramp submit first.xml second.xml --approve ask",
        "ramp submit job.xml --json | jq .units",
        exits="0 committed; 1 not bought, or no market; 2 bad input; 130 stopped waiting by a second Ctrl-C",
    )
)
@click.argument("files", nargs=-1, required=True, type=file_type, metavar="RFQ.xml...")
@auction_options
@click.option("--max-cost", type=credits_type, metavar="CREDITS",
              help="Maximum total cost of all units in credits.")  # fmt: skip
@click.option("--approve", type=click.Choice([each.value for each in Approval]), default="auto", show_default=True,
              help="auto: buy offers that meet the request; ask: show the offers first; best-offer: if none meets "
                   "the request, buy the best offer within --max-cost without asking.")  # fmt: skip
@market_options
def submit(max_cost: int | None, approve: str, **auction: Any) -> int:
    """Auction a request for quotation, buy the best offers by two-phase commit, and pay.

    Several files make one request with all their units, in this order; all are bought or none. `-` reads standard
    input. Ctrl-C or SIGTERM withdraws the request and waits for its end. A second Ctrl-C prints its state and stops
    waiting. If the output pipe closes, the request continues, and the exit code gives its result.
    """
    if approve == Approval.ASK and not sys.stdin.isatty():
        raise click.UsageError("--approve ask needs a terminal; use auto or best-offer")
    return _auction(**auction, approval=Approval(approve), max_cost=max_cost)


def _numbers(text: str) -> tuple[int, ...]:
    """Read numbers from 1, with commas between them."""
    words = text.split(",")
    if not all(word.isascii() and word.isdecimal() and 0 < len(word) < 4 and int(word) for word in words):
        raise ValueError(f"got {text!r}, expected the number of one offer for each unit, such as 2 or 1,3")
    return tuple(map(int, words))


class FileOrQuote(click.ParamType[Any]):
    """A file of RFQL; with --buy the id of a quote."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        buys = ctx is not None and ctx.params.get("buy") is not None
        return value if buys else file_type.convert(value, param, ctx)


@click.command(
    epilog=example(
        "ramp quote job.xml",
        "ramp quote job.xml --start-probability .95",
        "ramp quote --buy 2 request-1f0c9a5e   # the second offer of an earlier quote",
        exits="0 every unit has an offer that meets the request, or bought; 1 a unit has no such offer, not bought, or "
        "no market; 2 bad input, or the offers of the quote stand no more",
    )
)
@click.argument("files", nargs=-1, required=True, type=FileOrQuote(), metavar="RFQ.xml...|REQUEST")
@click.option("--buy", type=ReadAs("numbers", _numbers), is_eager=True, metavar="N[,N...]",
              help="Buy these offers of an earlier quote: the number of one for each unit.")  # fmt: skip
@auction_options
@market_options
def quote(buy: tuple[int, ...] | None, **auction: Any) -> int:
    """Auction a request for quotation without buying or holding anything.

    The offers are numbered, the best first. While they stand, --buy buys exactly the offers that it names, all or none,
    by the same two-phase commit as `ramp submit`. --json prints the object of `ramp submit`.
    """
    if buy is None:
        return _auction(**auction, quote_only=True)
    if len(auction["files"]) != 1:
        raise click.UsageError("--buy takes the id of one quote")
    return _buy(str(auction["files"][0]), buy, auction["user"], auction["state"])


def _buy(quote_id: str, numbers: tuple[int, ...], user: str | None, state: StateFolder) -> int:
    market = open_market(state, user)
    found = one_request(market.requests(), quote_id)
    view = new_view(market.short)
    with contextlib.closing(view):
        bought = market.buy_quote(found.request_id, numbers, on_event=view.show)
    files = {agreement_id: str(path) for agreement_id, path in bought.files.items()}
    with unless_closed():
        report(market, RequestEnded(bought.outcome, files))
    return EXIT_OF.get(bought.status, 1) if bought.status is not RequestStatus.QUOTED else 1


def _auction(
    files: Sequence[Path],
    rounds: int,
    round_time: Duration,
    prefer: str,
    rule: str,
    start_probability: float | None,
    sites: Sequence[str],
    user: str | None,
    state: StateFolder,
    **more: Any,
) -> int:
    options = AuctionOptions(rounds, round_time, Preference(prefer), rule=fixed_rule(rule), **more)
    request = load_requests(files)
    given = {"start_probability": start_probability, "sites": _named(sites)}
    terms: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if terms:
        request = combined([replace(request, units=tuple(replace(unit, **terms) for unit in request.units))])
    for warning in request.warnings:
        say(f"ramp: warning: {warning}")
    market = open_market(state, user)
    view = new_view(market.short)
    approve = ask_at_terminal(market.short, request) if options.approval is Approval.ASK else nobody_approves
    ended = follow(market, request, options, view, approve)
    with unless_closed():
        report(market, ended)
    return EXIT_OF.get(ended.outcome.status, 1)


def _named(sites: Sequence[str]) -> tuple[str, ...] | None:
    try:
        return named_sites(sites)
    except ConfigurationError as error:
        raise click.UsageError(error.reason.replace("sites=", "--site ")) from error


def follow(
    market: Market,
    request: RequestForQuotation,
    options: AuctionOptions,
    view: AuctionView,
    approve: Approver = nobody_approves,
) -> RequestEnded:
    """Submit a request and show it until it ends; Ctrl-C and SIGTERM withdraw it, SIGTERM with a time limit."""
    request_id = market.access.new_id("request")
    submitted = submission([request], options, market.access.now(), request_id)

    def asked(question: ApprovalAsked) -> bool:
        view.pause()
        return approve(question)

    def show(event: Event) -> None:
        if isinstance(event, ClockCompared):
            view.pause()
            say(f"ramp: warning: {offset_text(event)}" if event.wrong else "ramp: the clock is correct again")
        else:
            view.show(event)

    def interrupted() -> None:
        view.pause()
        say(f"ramp: withdrawing {request_id}; Ctrl-C again stops waiting for its end")

    def lost() -> None:
        view.pause()
        say("ramp: the User Agent ended during the request; waiting for its restart")

    try:
        # batch systems send SIGTERM at the end of a job
        with interrupted_by(signal.SIGTERM, again_s=TERMINATED_LIMIT_S), contextlib.closing(view):
            ended, _ = market.follow(submitted, approve=asked, on_event=show, on_interrupt=interrupted, on_lost=lost)
            return ended
    except KeyboardInterrupt:
        say(f"ramp: no longer waiting: {_pending(market, request_id)}")
        raise


def _pending(market: Market, request_id: str) -> str:
    hint = f"see its result with `ramp status {request_id}`"
    standing = within(PENDING_LIMIT_S, lambda: one_request(market.requests(), request_id))
    if standing is None:
        return f"the state of {request_id} is unknown: its User Agent does not answer; {hint}"
    if standing.outcome is None:
        doubt = f": {standing.doubt}" if standing.doubt else ""
        return f"{request_id} is still running ({standing.stage}{doubt}) and may still be bought; {hint}"
    status = standing.outcome.status
    if status is RequestStatus.COMMITTED:
        return f"{request_id} has been bought and paid; `ramp show {request_id}` shows it"
    return f"{request_id} has ended: {status.replace('_', ' ')}, nothing was bought"


def load_file(path: Path) -> RequestForQuotation:
    """Read a file, or standard input for `-`."""
    from ramp.rfql.request_for_quotation import load_request, parse_request

    if str(path) == "-":
        return parse_request(sys.stdin.buffer.read(), "standard input")
    return load_request(path)


def load_requests(files: Sequence[Path]) -> RequestForQuotation:
    """Read files as one request with all their units."""
    if len({str(path) for path in files}) < len(files):
        raise ConfigurationError("a file is given twice; to buy its units twice, copy the file")
    parts = {path: load_file(path) for path in files}
    return combined(
        [
            replace(part, warnings=tuple(f"{path}: {warning}" for warning in part.warnings))
            for path, part in parts.items()
        ]
    )


def new_view(short: ShortName) -> AuctionView:
    """Return the view for standard output."""
    if wants_json():
        return LiveView(short, error=True) if sys.stderr.isatty() else AuctionView()
    return LiveView(short) if sys.stdout.isatty() else LineView(short)


def report(market: Market, ended: RequestEnded) -> None:
    """Print the result of a request."""
    outcome = ended.outcome
    if not printed_as_json(outcome_object(outcome, ended.files, market.short)):
        print_outcome(outcome, ended.files, market.short)
        if outcome.status is RequestStatus.COMMITTED:
            say(f"`ramp show {outcome.request_id} --as sbatch` prints how to launch on what was bought")


def ask_at_terminal(short: ShortName, request: RequestForQuotation) -> Approver:
    """Return a function that asks the owner at the terminal, on standard error so that results stay clean."""

    def cores_asked(offer: Offer) -> int:
        return as_offered(request.unit(offer.unit), offer).cores.total

    def approve(asked: ApprovalAsked) -> bool:
        units = [
            BoughtUnit(offer.unit, offer, cores_asked(offer), meets_request=meets, paid=cost)
            for offer, meets, cost in zip(asked.offers, asked.meets, asked.costs, strict=True)
        ]
        fields: Fields[BoughtUnit] = Fields(
            UNIT,
            *slot_fields(short),
            Field("", "Price", lambda unit: unit.offer.cpu_hour_cost, NUMBER),
            Field("", "Cost", lambda unit: unit.cost, AMOUNT),
            Field("", "Meets request", lambda unit: "yes" if unit.meets_request else "no"),
        )
        fields.print_table(units, title="Offers (price in credits/core-hour, cost in credits)", error=True)
        try:
            return click.confirm(f"Buy for {amount_text(sum(asked.costs))}?", default=False, err=True)
        except click.Abort:
            say("")
            return False

    return approve
