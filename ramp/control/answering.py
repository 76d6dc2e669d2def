"""Conversion between the control channel and a party's protocol.

Agents serve the channel over a Unix socket, a simulated market in its own process. Both use these functions, so the
same request gets the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, Final

from ramp.control import events
from ramp.control.requests import (
    ListAgreements,
    ListJobs,
    ListRequests,
    Request,
    Submit,
    UserCommand,
    Watch,
)
from ramp.errors import ConfigurationError
from ramp.model import contents as c
from ramp.model.contents.jobs import limits_problem
from ramp.model.instant import MILLISECOND, SECOND
from ramp.protocol import events as ev
from ramp.protocol import progress as pr
from ramp.protocol.outcome import RequestOutcome
from ramp.protocol.rules.auction_rule import PAPER_RULE
from ramp.protocol.rules.checked_rule import ROUNDS_MAX
from ramp.protocol.user.evaluator import BIDS_MAX, BIDS_SHOWN
from ramp.protocol.user.jobs import ORDER_MARK
from ramp.protocol.user.party import UserParty
from ramp.rfql.request_for_quotation import parse_request
from ramp.rfql.xml.parser import DOCUMENT_BYTES_MAX, check_size
from ramp.runtime.auction_rules import RULES
from ramp.text import is_printable, one_line

ROUND_TIME_LEAST: Final = 100 * MILLISECOND
"""Shortest limit of a round; below it answers of another machine could not be in."""

BID_BYTES: Final = 60
"""Maximum bytes of a bid in a call for proposals, besides the name of its resource."""

NAME_MAX: Final = 80
"""Maximum number of characters of an owner's name for a request."""

FilesOf = Callable[[str], tuple[str | None, str | None]]
"""Paths of the signed agreement with an id and of the bank's receipt; None without such a file."""


def no_files(_: str) -> tuple[None, None]:
    """Return no paths, for markets that keep no files."""
    return None, None


def submission(request: Submit, request_id: str) -> ev.RequestSubmitted:
    """Return the command of a submission; raises `DocumentError` or `ConfigurationError` if it is invalid."""
    options = request.options
    if not 1 <= options.rounds <= ROUNDS_MAX:
        raise ConfigurationError(f"rounds must be 1 to {ROUNDS_MAX}, got {options.rounds}")
    if options.round_time < ROUND_TIME_LEAST:
        raise ConfigurationError(
            f"round_time must be at least {ROUND_TIME_LEAST / SECOND:g} s, got {options.round_time / SECOND:g} s"
        )
    if options.max_cost is not None and options.max_cost <= 0:
        raise ConfigurationError(f"max_cost must be above 0 hundredths of a credit, got {options.max_cost}")
    if len(options.name) > NAME_MAX or not is_printable(options.name):
        shown = one_line(options.name, NAME_MAX)
        raise ConfigurationError(f"name must be at most {NAME_MAX} printable characters, got {shown}")
    if options.rule:
        RULES.find(options.rule)
    asked = parse_request(request.document)
    limit = min((each for each in (options.max_cost, asked.max_cost) if each is not None), default=None)
    if options.approval is ev.Approval.BEST_OFFER and limit is None:
        raise ConfigurationError(
            "approve=best-offer buys above the limits of the units, so it needs a maximum total cost: set --max-cost, "
            "max_cost or MaxCost"
        )
    return ev.RequestSubmitted(request_id, asked, replace(options, max_cost=limit))


Wanted = Callable[[pr.Progress], bool]
Step = events.Event | ev.Command | Wanted
Conversation = Generator[Step, Any, None]
"""The answer to a request in steps: events for the owner, commands for the party, and waits for wanted progress of the
party, which is sent to the generator. `advance` takes the next step."""


def advance(steps: Conversation, heard: pr.Progress | None = None) -> Step | None:
    """Return the next step after one that is done; `heard` is the progress that was waited for. None at the end."""
    try:
        return steps.send(heard)
    except StopIteration:
        return None


def answered(
    request: Request,
    party: UserParty,
    new_id: Callable[[str], str],
    domain: str,
    files_of: FilesOf,
    whole: Callable[[RequestOutcome], RequestOutcome] = lambda outcome: outcome,
) -> Conversation:
    """Answer a request of a user; without a step if a user's agent does not serve it.

    `domain` completes local names of agents. `whole` completes an outcome, of which the party keeps a part.
    """
    match request:
        case Submit():
            command = submission(request, request.request_id or new_id("request"))
            # its calls for proposals, with bids of other resources, must not become too large
            bids = min(BIDS_MAX, BIDS_SHOWN * len(command.request.units))
            room = bids * (BID_BYTES + len(party.name.encode()))
            check_size(request.document, limit=DOCUMENT_BYTES_MAX - room)
            yield events.Submitted(command.request_id, command.request.warnings)
            if command.request_id in party.purchases:  # submitted again: continue with its events
                yield from _followed(command.request_id, party, files_of, whole)
                return
            if party.clock is not None and party.clock.wrong:
                yield party.clock
            yield command
            yield from _progress_of(command.request_id, files_of)
        case Watch(""):
            yield events.Watching()
            while True:
                event = _told((yield lambda _: True), files_of)
                if event is not None:
                    yield event
        case Watch(id_) | ev.OffersApproved(id_) | ev.RequestWithdrawn(id_) if id_ not in party.purchases:
            yield events.Refused(events.MarketRefusalCode.UNKNOWN_REQUEST, f"unknown request {id_}")
        case ev.OffersApproved(id_, True, sellers) if sellers and not party.purchases[id_].stands(sellers):
            reason = f"the quote {id_} has no such offer any more; ask for a new one with `ramp quote`"
            yield events.Refused(events.MarketRefusalCode.QUOTE_OVER, reason)
        case Watch(request_id):
            yield from _followed(request_id, party, files_of, whole)
        case ListRequests():
            yield _requests_of(party)
        case ListAgreements():
            yield _agreements_of(party, files_of)
        case ListJobs():
            yield _jobs_of(party)
        case _ if isinstance(request, UserCommand):
            yield from commanded(request, new_id, domain)


def _followed(
    request_id: str, party: UserParty, files_of: FilesOf, whole: Callable[[RequestOutcome], RequestOutcome]
) -> Conversation:
    """Report progress and end of a known request; each connection is asked for approval until one has answered."""
    purchase = party.purchases[request_id]
    if purchase.outcome is not None:
        yield _ended(whole(purchase.outcome), files_of)
        return
    if purchase.asked is not None:
        yield purchase.asked  # the question is older than this connection
    yield from _progress_of(request_id, files_of)


def _progress_of(request_id: str, files_of: FilesOf) -> Conversation:
    progress: pr.Progress | None = None
    while not isinstance(progress, pr.RequestEnded):
        progress = yield lambda each: isinstance(each, pr.ClockCompared) or _request_of(each) == request_id
        event = _told(progress, files_of)
        assert event is not None, "all progress of a request has an event"
        yield event


Subject = str | tuple[str, bool]
"""What a progress answers: a question by its id, or a change of an agreement, and whether that ends it."""


def commanded(request: UserCommand | ev.KeeperAsked, new_id: Callable[[str], str], domain: str) -> Conversation:
    """Give a command and report its result; `domain` completes local names of agents and accounts."""
    command, subjects = _command(request, new_id, domain)
    yield command
    found: dict[Subject, pr.Progress] = {}
    while len(found) < len(subjects):
        progress: pr.Progress = yield lambda each: _subject(each) in subjects
        found[_subject(progress)] = progress
    match [found[subject] for subject in subjects]:
        case [pr.QueryAnswered() as answer]:
            yield _answer_of(answer)
        case []:
            yield events.Done()
        case changes:
            yield events.ChangesEnded(tuple(each.outcome for each in changes if isinstance(each, pr.ChangeEnded)))


def _command(
    request: UserCommand | ev.KeeperAsked, new_id: Callable[[str], str], domain: str
) -> tuple[ev.Command, tuple[Subject, ...]]:
    """Return the command of a request with its own id, and the subjects of its answers.

    Raises:
        ConfigurationError: if its values make no sense.
    """
    match request:
        case ev.OffersApproved() | ev.RequestWithdrawn():
            return request, ()
        case ev.AgreementCancelled(agreement_id, reason):
            return replace(request, reason=reason or "cancelled by the user"), ((agreement_id, True),)
        case ev.AgreementResized(agreement_id):
            return request, tuple((each, False) for each in dict.fromkeys((agreement_id, *request.together)))
        case ev.JobSubmitted(order):
            problem = limits_problem(order)
            if problem:
                raise ConfigurationError(problem)
            return request, (ORDER_MARK + order.job_id,)
        case ev.KeeperAsked(word):
            return _ordered(word, new_id, domain)
        case ev.MachineAsked(_, resource):
            request = replace(request, resource=full_name(resource, domain))
    query_id = new_id("query")
    return replace(request, query_id=query_id), (query_id,)


def _ordered(
    word: c.DepositOrder | c.RefundOrder | c.OverviewQuery, new_id: Callable[[str], str], domain: str
) -> tuple[ev.Command, tuple[Subject, ...]]:
    match word:
        case c.DepositOrder(deposit_id, account, amount):
            if amount <= 0:
                raise ConfigurationError(f"the deposit must be above 0 minor units, got {amount}")
            reference = deposit_id or new_id("deposit")
            word = replace(word, deposit_id=reference, account=full_name(account, domain))
        case c.RefundOrder(reference):
            pass
        case c.OverviewQuery():
            reference = new_id("query")
            word = replace(word, query_id=reference)
    return ev.KeeperAsked(word), (reference,)


def _subject(progress: pr.Progress) -> Subject:
    match progress:
        case pr.QueryAnswered(query_id):
            return query_id
        case pr.ChangeEnded(outcome):
            return outcome.agreement_id, outcome.ends
        case _:
            return ""


def full_name(name: str, domain: str) -> str:
    """Return an agent's full name, given with or without its domain."""
    return name if "@" in name or not domain else f"{name}@{domain}"


def _answer_of(answered: pr.QueryAnswered) -> events.Event:
    """Return the answer to a question, or the refusal."""
    found = answered.answer
    if found is None:
        hint = "no answer; check with `ramp ps` that the agent is up"
        return events.Refused(events.MarketRefusalCode.NO_ANSWER, hint)
    if isinstance(found, c.RequestRefused):
        return events.Refused(events.MarketRefusalCode.BANK_REFUSED, f"the bank refuses: {found.detail or found.code}")
    if isinstance(found, c.JobRefused):
        return events.Refused(events.MarketRefusalCode.JOB_REFUSED, f"{found.code}: {found.detail}")
    if isinstance(found, c.NotUnderstood):
        return events.Refused(events.MarketRefusalCode.NOT_UNDERSTOOD, found.reason)
    assert not isinstance(found, c.EnrolmentGranted), "only the owner of an agent asks this"
    return found


def _told(progress: pr.Progress, files_of: FilesOf) -> events.Event | None:
    """Return a party's progress as the event for its owner; None if it does not concern the owner."""
    if isinstance(progress, pr.RequestEnded):
        return _ended(progress.outcome, files_of)
    return progress if isinstance(progress, events.Event) else None


def _request_of(progress: pr.Progress) -> str:
    """Return the id of the request that a progress belongs to, or ""."""
    return progress.request_id if isinstance(progress, pr.UnitMoved) else events.request_of(progress)


def _ended(outcome: RequestOutcome, files_of: FilesOf) -> pr.RequestEnded:
    """Return the event for the end of a request, with the files of the agreements."""
    files = {unit.agreement_id: files_of(unit.agreement_id)[0] for unit in outcome.units if unit.agreement_id}
    return pr.RequestEnded(outcome, files)


def _requests_of(party: UserParty) -> events.RequestsListed:
    """List all requests of a user."""
    money = events.by_request(_agreements_of(party, no_files).agreements)
    return events.RequestsListed(
        tuple(
            events.RequestStanding(
                request_id,
                purchase.stage,
                purchase.doubt,
                len(purchase.request.units),
                purchase.started_at,
                purchase.outcome,
                rule=purchase.options.rule or PAPER_RULE,
                charged=money.get(request_id, (0, 0))[0],
                returned=money.get(request_id, (0, 0))[1],
                name=purchase.options.name,
            )
            for request_id, purchase in party.purchases.items()
        ),
        party.clock,
    )


def _jobs_of(party: UserParty) -> events.JobsListed:
    """List all jobs of a user with their last known state."""
    return events.JobsListed(
        tuple(
            events.JobStanding(
                job.order,
                job.request_id,
                job.resource,
                job.ordered_at,
                job.word if isinstance(job.word, c.JobStatus) else None,
                job.word if isinstance(job.word, c.JobRefused) else None,
                party.agreement_state(job.order.agreement_id),
            )
            for job in party.jobs.known
        )
    )


def _agreements_of(party: UserParty, files_of: FilesOf) -> events.AgreementsListed:
    """List all agreements of a user."""
    doubts = party.doubts()
    return events.AgreementsListed(
        tuple(
            events.AgreementStanding(
                agreement,
                party.agreement_state(agreement_id),
                doubts.get(agreement_id, ""),
                *files_of(agreement_id),
                amendments=party.changes.history.posted(agreement_id),
                moved=party.moves.last.get(agreement_id),
                refunded=refund.refund if (refund := party.changes.history.ended.get(agreement_id)) else 0,
                cause=refund.cause if refund else "",
            )
            for agreement_id, agreement in party.agreements.items()
        )
    )
