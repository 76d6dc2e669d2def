"""`ramp status`, `reservations`, `show`, `cancel` and `resize`: requests and reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from ramp.cli.connection import ask, open_market
from ramp.cli.options import WholeNumber, complete_ids, credits_type, example, market_options, moment_type
from ramp.cli.views.fields import AMOUNT, DATETIME, DURATION, MOMENT, NUMBER, PROSE, Field, Fields, address
from ramp.cli.views.launch_snippets import SNIPPETS, snippet
from ramp.cli.views.output import amount_text, count_text, moment_text, print_line, printed_as_json, say, wants_json
from ramp.cli.views.reports import agreement_object, outcome_object, print_agreement, print_outcome, shown_state
from ramp.client import dialogues
from ramp.client.identifiers import belonging, one_request, shortened
from ramp.client.market import Market
from ramp.client.results import Cancelled, Resized
from ramp.control.events import AgreementStanding, RequestStanding, by_request
from ramp.errors import ConfigurationError
from ramp.model import money
from ramp.model.instant import Instant, from_datetime
from ramp.protocol import records as rc
from ramp.protocol.clock_comparison import offset_text
from ramp.protocol.events import AgreementResized
from ramp.protocol.outcome import ALREADY_CANCELLED, RequestOutcome
from ramp.protocol.rules.auction_rule import PAPER_RULE
from ramp.protocol.user.changing.history import History
from ramp.runtime.journal import Archive
from ramp.runtime.state_folder import StateFolder

PAST: Final = "past"
"""State of an agreement whose slot has ended long ago."""


class PastRequests:
    """The archive of one user in the form of the control channel; the User Agent does not load it."""

    def __init__(self, state: StateFolder, user: str) -> None:
        self._state = state
        self._user = user
        self._archive = Archive(state.journal(user))

    def __len__(self) -> int:
        return self._archive.request_count()

    def listed(self) -> tuple[RequestStanding, ...]:
        """List all requests, oldest first, without rounds; raises `StateDamaged` for a damaged archive."""
        found = []
        money = by_request(self.agreements())
        for outcome, units in self._archive.requests():
            charged, returned = money.get(outcome.request_id, (0, 0))
            rule = outcome.rule or PAPER_RULE
            standing = RequestStanding(outcome.request_id, outcome.status, "", units, outcome.started_at, outcome)
            standing = replace(standing, archived=True, rule=rule, name=outcome.name)
            found.append(replace(standing, charged=charged, returned=returned))
        return tuple(found)

    def outcome(self, request_id: str) -> RequestOutcome | None:
        """Return the result of a request with its rounds; None if it is not archived."""
        records = self._archive.of_reference(request_id)
        return next((each.outcome for each in reversed(records) if isinstance(each, rc.RequestConcluded)), None)

    def agreements(self) -> tuple[AgreementStanding, ...]:
        """List all agreements: `past`, `cancelled`, `lost`, or `void` with its order."""
        bought = {unit.agreement_id for outcome, _ in self._archive.requests() for unit in outcome.units}
        drawn_up = [agreement for asked in self._archive.of_kind(rc.FundsAsked) for agreement in asked.agreements]
        history = History({agreement.agreement_id: agreement for agreement in drawn_up})
        for proposed in self._archive.of_kind(rc.ChangeProposed):
            history.propose(proposed.signed.change)
        for changed in self._archive.of_kind(rc.ChangeConcluded):
            history.note(changed.outcome)
        moved = {heard.word.agreement_id: heard.word for heard in self._archive.of_kind(rc.MoveHeard)}  # the last
        found = []
        for agreement in drawn_up:
            agreement_id = agreement.agreement_id
            back = history.ended.get(agreement_id)
            state = PAST if agreement_id in bought else "void"
            if back is not None:
                state = "lost" if back.cause else "cancelled"
            found.append(
                AgreementStanding(
                    agreement,
                    state,
                    file=_existing(self._state.agreement(self._user, agreement_id)),
                    payment_file=_existing(self._state.payment(self._user, agreement_id)),
                    archived=True,
                    moved=moved.get(agreement_id),
                    amendments=history.posted(agreement_id),
                    refunded=0 if back is None else back.refund,
                    cause="" if back is None else back.cause,
                )
            )
        return tuple(found)


def _existing(path: Path) -> str | None:
    return str(path) if path.exists() else None


WHOM: Final = "asking the User Agent"

CANCELLED: Final[Fields[Cancelled]] = Fields(
    Field("request_id", "", lambda result: result.request_id),
    Field("agreement_id", "", lambda result: result.agreement_id),
    Field("cancelled", "", lambda result: result.done),
    Field("withdrawn", "", lambda result: result.withdrawn),
    Field("refund", "", lambda result: result.refund, AMOUNT),
    Field("code", "", lambda result: result.code),
    Field("detail", "", lambda result: result.detail),
)
RESIZED: Final[Fields[Resized]] = Fields(
    Field("agreement_id", "", lambda result: result.agreement_id),
    Field("changed", "", lambda result: result.done),
    Field("quoted", "", lambda result: result.quoted),
    Field("amendment", "", lambda result: result.number or None),
    Field("cores", "", lambda result: result.cores),
    Field("end", "", lambda result: result.end, DATETIME),
    Field("effective_at", "", lambda result: result.effective_at, DATETIME),
    Field("refund", "", lambda result: result.refund, AMOUNT),
    Field("charge", "", lambda result: result.charge, AMOUNT),
    Field("code", "", lambda result: result.code),
    Field("detail", "", lambda result: result.detail),
)


def _requests(short: Mapping[str, str]) -> Fields[RequestStanding]:
    return Fields(
        Field("request_id", "Request", lambda each: each.request_id, text=lambda each: short[each.request_id]),
        Field(
            "status", "Status", _status, text=lambda each: f"running ({each.stage})" if _runs(each) else _status(each)
        ),
        Field("name", "Name", lambda each: each.name, shown_if=lambda each: bool(each.name)),
        Field("stage", "", lambda each: each.stage),
        Field("units", "Units", lambda each: each.units, NUMBER),
        Field("in_doubt", "", lambda each: bool(each.doubt)),
        Field("rule", "Rule", lambda each: each.rule, shown_if=lambda each: each.rule != PAPER_RULE),
        Field("archived", "", lambda each: each.archived),
        Field("started_at", "Submitted", lambda each: each.started_at, MOMENT),
        Field("duration_s", "Took", lambda each: each.outcome and each.outcome.duration, DURATION),
        Field("cost", "Cost (credits)", lambda each: None if _runs(each) else each.cost, AMOUNT),
        Field("charged", "", lambda each: None if _runs(each) else each.charged, AMOUNT),
        Field(
            "returned",
            "Returned (credits)",
            lambda each: None if _runs(each) else each.returned,
            AMOUNT,
            text=lambda each: money.credits_text(each.returned) if each.returned else "",
            shown_if=lambda each: bool(each.returned),
        ),
        Field("reason", "Reason", lambda each: each.doubt if each.outcome is None else each.outcome.reason, PROSE),
    )


def _runs(entry: RequestStanding) -> bool:
    return entry.outcome is None


def _status(entry: RequestStanding) -> str:
    return "running" if entry.outcome is None else entry.outcome.status


def _reservations(entries: Sequence[AgreementStanding], market: Market) -> Fields[AgreementStanding]:
    now, short = market.access.now(), shortened([entry.agreement.agreement_id for entry in entries])
    return Fields(
        Field("", "Reservation", lambda entry: entry.reservation_id),
        Field("", "State", lambda entry: shown_state(entry, now)),
        Field("", "Resource", lambda entry: entry.agreement.resource, address(market.short)),
        Field("", "Start", lambda entry: entry.agreement.offer.start, MOMENT),
        Field("", "End", lambda entry: entry.end, MOMENT),
        Field("", "Cores", lambda entry: entry.cores, NUMBER),
        Field("", "Cost (credits)", lambda entry: entry.cost, AMOUNT),
        Field("", "Agreement", lambda entry: short[entry.agreement.agreement_id]),
    )


@click.command(epilog=example("ramp status", "ramp status request-1f0c9a5e7b3d2c4a6f8e0d1b --json"))
@click.argument("request_id", shell_complete=complete_ids("request"), required=False)
@click.option("--all", "show_all", is_flag=True, help="Also requests in the archive.")
@market_options
def status(request_id: str | None, show_all: bool, user: str | None, state: StateFolder) -> None:
    """Show requests, or one in full.

    The status is running, committed, quoted, no_offers, withdrawn, rejected or failed. If something is in doubt, the
    way to its resolution is shown. A unique beginning of an id is enough.

    One hour after its end, or that of its slots ([timing] retention_s), a request moves to the archive. --all lists it,
    and its id still works.
    """
    market = open_market(state, user)
    listing = ask(market, dialogues.listing(), WHOM)
    past = PastRequests(state, market.user)
    if listing.clock is not None and listing.clock.wrong:
        say(f"ramp: warning: {offset_text(listing.clock)}")
    if request_id is not None:
        known = _with_past(listing.requests, past, request_id)
        _show_request(market, past, one_request(known, request_id))
        return
    listed = (*past.listed(), *listing.requests) if show_all else listing.requests
    older = 0 if show_all else len(past)
    short = shortened([entry.request_id for entry in listed])
    fields = _requests(short)
    if printed_as_json([fields.plain(entry) for entry in listed]):
        return
    if not listed:
        click.echo(f"{market.user} has no requests {'lately' if older else 'yet'}{_in_archive(older)}")
        return
    fields.print_table(listed)
    for agreement in ask(market, dialogues.agreements(), WHOM):
        if agreement.doubt:
            print_line(f"In doubt: {agreement.doubt}")
    if older:
        print_line(f"Not shown{_in_archive(older)}")


def _in_archive(requests: int) -> str:
    return f": {count_text(requests, 'request')} in the archive (--all lists them)" if requests else ""


def _with_past(entries: tuple[RequestStanding, ...], past: PastRequests, any_id: str) -> tuple[RequestStanding, ...]:
    """Add archived requests, unless an id is exactly that of a listed request."""
    return entries if any(entry.request_id == any_id for entry in entries) else (*entries, *past.listed())


@click.command(epilog=example("ramp reservations", "ramp reservations --all --json"))
@click.option("--all", "show_all", is_flag=True, help="Also cancelled, lost, void and past reservations.")
@market_options
def reservations(show_all: bool, user: str | None, state: StateFolder) -> None:
    """Show reservations: machine, slot, price and ids.

    A slot that has not begun is `upcoming`, one that is over `past`; --json has the agreement's own state, `active` for
    both. Every command takes these ids.
    """
    market = open_market(state, user)
    found = ask(market, dialogues.reservations(market.access.domain, everything=show_all), WHOM)
    entries = [each.standing for each in found]
    if show_all:
        entries += PastRequests(state, market.user).agreements()
        entries.sort(key=lambda entry: (entry.agreement.offer.start, entry.agreement.agreement_id))
    if printed_as_json([agreement_object(entry, market.short) for entry in entries]):
        return
    if entries:
        _reservations(entries, market).print_table(entries)
    else:
        click.echo(f"{market.user} has no reservations{'' if show_all else ' (--all shows past ones)'}")


@click.command(epilog=example("ramp show agreement-1f0c9a5e7b3d2c4a6f8e0d1b", "ramp show thunder1.7 --as sbatch"))
@click.argument("any_id", shell_complete=complete_ids("request", "agreement", "reservation"), metavar="ID")
@click.option("--as", "style", type=click.Choice(sorted(SNIPPETS)), help="Print how to launch on it with this tool.")
@market_options
def show(any_id: str, style: str | None, user: str | None, state: StateFolder) -> None:
    """Show a request, an agreement or a reservation in full.

    --as prints instead how to use the reservation: sbatch (Slurm), qsub (Grid Engine, PBS), psij (PSI/J for Python),
    parsl (Parsl on Slurm), mpirun (a script for Blue Gene/L), env (environment variables). A unique beginning of an id
    is enough.
    """
    market = open_market(state, user)
    if style is not None and wants_json():
        raise click.UsageError("--as and --json exclude each other")
    past = PastRequests(state, market.user)
    request, entries = _find(market, past, any_id)
    if style is not None:
        if not entries:
            raise ConfigurationError(f"{any_id}: nothing was bought under this id, so there is nothing to launch on")
        click.echo("\n\n".join(snippet(style, entry.amended, market.short) for entry in entries))
    elif request is not None:
        _show_request(market, past, request)
    elif not printed_as_json(agreement_object(entries[0], market.short)):
        print_agreement(entries[0], market.short, market.access.now())


@click.command(epilog=example('ramp cancel agreement-1f0c9a5e7b3d2c4a6f8e0d1b --reason "no longer needed"'))
@click.argument(
    "ids", shell_complete=complete_ids("request", "agreement", "reservation"), metavar="ID...", nargs=-1, required=True
)
@click.option("--reason", default="", metavar="TEXT", help="Reason for the records of the resource and the bank.")
@market_options
def cancel(ids: tuple[str, ...], reason: str, user: str | None, state: StateFolder) -> int:
    """Cancel reservations for a refund, or withdraw a running request.

    ID is an agreement, a reservation, or a request; a request cancels everything that it bought. The refund is posted
    before the command ends. Cancelling again changes nothing, refunds nothing and is no failure. Exit code 1 if
    anything could not be cancelled.
    """
    market = open_market(state, user)
    results = [result for any_id in ids for result in _cancel(market, PastRequests(state, market.user), any_id, reason)]
    for result in [] if printed_as_json([CANCELLED.plain(result) for result in results]) else results:
        if result.withdrawn:
            print_line(f"Request {result.request_id}: {'already ' if result.code else ''}withdrawn")
        elif result.done and result.code:
            print_line(f"Agreement {result.agreement_id}: already cancelled; {result.detail}")
        elif result.done:
            print_line(f"Agreement {result.agreement_id}: cancelled, {amount_text(result.refund)} refunded")
        else:
            say(f"ramp: agreement {result.agreement_id}: not cancelled: {result.detail or result.code}")
    return 0 if all(result.done or result.withdrawn for result in results) else 1


@click.command(
    epilog=example(
        "ramp resize thunder1-7 --cores 8 --quote",
        "ramp resize thunder1-7 --cores 8 --json",
        "ramp resize thunder1-7 --cores 128 --until +4h --max-cost 5000",
    )
)
@click.argument(
    "any_ids",
    shell_complete=complete_ids("reservation", "agreement"),
    metavar="RESERVATION...",
    nargs=-1,
    required=True,
)
@click.option("--cores", type=WholeNumber(min=1), metavar="N", help="New number of cores.")
@click.option("--until", type=moment_type, metavar="TIME", help="New end.")
@click.option(
    "--price", type=WholeNumber(min=0), metavar="CREDITS", help="Maximum price of the addition in credits/core-hour."
)
@click.option("--max-cost", type=credits_type, metavar="CREDITS", help="Maximum total cost of the addition in credits.")
@click.option("--quote", is_flag=True, help="Only preview the cost or refund.")
@market_options
def resize(
    any_ids: tuple[str, ...],
    cores: int | None,
    until: Instant | None,
    price: int | None,
    max_cost: int | None,
    quote: bool,
    user: str | None,
    state: StateFolder,
) -> int:
    """Change the number of cores or the end of a reservation, before or while it runs.

    You and the seller sign an amendment. Fewer cores or an earlier end take effect after a few seconds of notice. The
    bank then refunds the price of what you gave up, rounded down.

    For more cores or a later end the seller asks a price by its load, up to --price (default: the price limit of the
    request) and --max-cost. The addition is yours once both have signed and you have paid. Until then, and if a step
    fails, the reservation stays as it was. Additions to several reservations are paid together or not at all. `ramp
    verify` checks an agreement with its amendments.

    Exit code 1 if the change failed, 2 for an invalid id or size.
    """
    if cores is None and until is None:
        raise click.UsageError("no new size: give --cores, --until, or both")
    market = open_market(state, user)
    wish = AgreementResized("", cores, until, quote, price, max_cost)
    results = ask(market, dialogues.resize(any_ids, wish), f"changing {', '.join(any_ids)}")
    objects = [RESIZED.plain(result) for result in results]
    for result in () if printed_as_json(objects[0] if len(objects) == 1 else {"changes": objects}) else results:
        when = "" if result.effective_at is None else f" from {moment_text(from_datetime(result.effective_at))} on"
        stands = f"{count_text(result.cores, 'core')} until {moment_text(from_datetime(result.end))}{when}"
        back, paid = amount_text(result.refund), amount_text(result.charge)
        if result.quoted:
            would = f"would cost {paid}" if result.charge else f"would give {back} back"
            click.echo(f"Agreement {result.agreement_id}: {stands} {would}")
        elif result.done:
            moved = f"{paid} paid" if result.charge else f"{back} given back"
            click.echo(f"Agreement {result.agreement_id}: {stands}, {moved}")
        else:
            say(f"ramp: agreement {result.agreement_id}: not changed: {result.detail or result.code}")
    return 0 if all(result.done or result.quoted for result in results) else 1


def _find(
    market: Market, past: PastRequests, any_id: str
) -> tuple[RequestStanding | None, tuple[AgreementStanding, ...]]:
    """Find what an id means, also in the archive unless it is exactly the id of something listed."""
    requests = ask(market, dialogues.requests(), WHOM)
    agreements = ask(market, dialogues.agreements(), WHOM)
    ids = {value for each in agreements for value in (each.agreement.agreement_id, each.reservation_id)}
    if any_id not in ids.union(each.request_id for each in requests):
        requests, agreements = (*requests, *past.listed()), (*agreements, *past.agreements())
    return belonging(any_id, requests, agreements)


def _cancel(market: Market, past: PastRequests, any_id: str, reason: str) -> tuple[Cancelled, ...]:
    """Cancel what an id means; report archived agreements as past."""
    try:
        return ask(market, dialogues.cancel(any_id, reason), f"cancelling {any_id}")
    except ConfigurationError:
        _, entries = _find(market, past, any_id)
        if not entries or not all(entry.archived for entry in entries):
            raise
    return tuple(_cancelled_before(entry) for entry in entries)


def _cancelled_before(entry: AgreementStanding) -> Cancelled:
    ids = entry.agreement.agreement_id, entry.agreement.request_id
    if entry.state == "cancelled":
        detail = f"it was cancelled before, with a refund of {amount_text(entry.refunded)}"
        return Cancelled(*ids, done=True, code=ALREADY_CANCELLED, detail=detail)
    detail = f"it is {entry.state}; only a reservation that has not begun can be cancelled"
    return Cancelled(*ids, done=False, code=PAST, detail=detail)


def _show_request(market: Market, past: PastRequests, entry: RequestStanding) -> None:
    if entry.outcome is None:
        if printed_as_json(_requests({}).plain(entry)):
            return
        units = count_text(entry.units, "unit")
        since = moment_text(entry.started_at)
        print_line(f"Request {entry.request_id}: running ({entry.stage}), {units}, since {since}")
        click.echo(f"Auction rule: {entry.rule}")
        if entry.doubt:
            print_line(f"In doubt: {entry.doubt}")
        return
    full = past.outcome(entry.request_id) if entry.archived else None
    if full is None:
        full = ask(market, dialogues.outcome(entry.request_id), f"asking for {entry.request_id}")
    outcome = full or entry.outcome
    bought = {
        standing.agreement.agreement_id: standing
        for standing in (past.agreements() if entry.archived else ask(market, dialogues.agreements(), WHOM))
        if standing.agreement.request_id == entry.request_id
    }
    files = {agreement_id: standing.file for agreement_id, standing in bought.items()}
    if not printed_as_json(outcome_object(outcome, files, market.short, bought)):
        print_outcome(outcome, files, market.short, bought)
