"""Conversion between the control channel and a party's protocol.

Agents serve the channel over a Unix socket, a simulated market in its own process. Both use these functions, so the
same request gets the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, assert_never

from ramp.control.events import (
    AgreementsListed,
    AgreementStanding,
    ChangesEnded,
    Event,
    JobsListed,
    JobStanding,
    MarketRefusalCode,
    Refused,
    RequestEnded,
    RequestsListed,
    RequestStanding,
    by_request,
)
from ramp.control.requests import (
    AskAccount,
    AskJob,
    AskJobOutput,
    AskMachine,
    AskResources,
    CancelJob,
    Launch,
    Resize,
    SendJobInput,
    Submit,
)
from ramp.errors import ConfigurationError
from ramp.model.contents import (
    EnrolmentGranted,
    JobRefused,
    JobStatus,
    NotUnderstood,
    RequestRefused,
)
from ramp.model.contents.jobs import limits_problem
from ramp.model.instant import MILLISECOND, SECOND
from ramp.protocol import events as ev
from ramp.protocol import progress as pr
from ramp.protocol.events import AgreementResized
from ramp.protocol.outcome import AmendmentOutcome, RequestOutcome
from ramp.protocol.rules.auction_rule import PAPER_RULE
from ramp.protocol.rules.checked_rule import ROUNDS_MAX
from ramp.protocol.user.jobs import ORDER_MARK
from ramp.protocol.user.party import UserParty
from ramp.rfql.request_for_quotation import parse_request
from ramp.runtime.auction_rules import RULES

ROUND_TIME_LEAST: Final = 100 * MILLISECOND
"""Shortest limit of a round; below it answers of another machine could not be in."""

FileOf = Callable[[str], Path | None]
"""The file that belongs to an agreement's id, or None."""


def no_files(_: str) -> None:
    """Return no path, for markets that keep no files."""


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


Question = AskAccount | AskMachine | AskResources | Launch | AskJob | CancelJob | AskJobOutput | SendJobInput
"""Questions to a party of the market, answered in one message."""


def query_of(request: Question, new_id: Callable[[str], str]) -> str:
    """Return the id under which a party asks a question."""
    if isinstance(request, Launch):
        return ORDER_MARK + request.order.job_id
    return new_id("nonce" if isinstance(request, AskAccount) else "query")


def question(request: Question, query_id: str, domain: str) -> ev.Command:
    """Return the command of a question; `domain` completes the local name of a resource."""
    match request:
        case AskAccount(since, until):
            return ev.AccountAsked(query_id, since, until)
        case AskMachine(resource, horizon):
            return ev.MachineAsked(query_id, full_name(resource, domain), horizon)
        case AskResources(service):
            return ev.ResourcesAsked(query_id, service)
        case Launch(order):
            problem = limits_problem(order)
            if problem:
                raise ConfigurationError(problem)
            return ev.JobSubmitted(order)
        case AskJob(job_id):
            return ev.JobAsked(query_id, job_id)
        case CancelJob(job_id):
            return ev.JobCancelled(query_id, job_id)
        case AskJobOutput(job_id, name, offset):
            return ev.JobOutputAsked(query_id, job_id, name, offset)
        case SendJobInput(job_id, agreement_id, offset, data):
            return ev.JobInputSent(query_id, job_id, agreement_id, offset, data)
        case _:
            assert_never(request)


def full_name(name: str, domain: str) -> str:
    """Return an agent's full name, given with or without its domain."""
    return name if "@" in name or not domain else f"{name}@{domain}"


def answer(answered: pr.QueryAnswered) -> Event:
    """Return the answer to a question, or the refusal."""
    found = answered.answer
    if found is None:
        return Refused(MarketRefusalCode.NO_ANSWER, "no answer; check with `ramp ps` that the agent is up")
    if isinstance(found, RequestRefused):
        return Refused(MarketRefusalCode.BANK_REFUSED, f"the bank refuses: {found.detail or found.code}")
    if isinstance(found, JobRefused):
        return Refused(MarketRefusalCode.JOB_REFUSED, f"{found.code}: {found.detail}")
    if isinstance(found, NotUnderstood):
        return Refused(MarketRefusalCode.NOT_UNDERSTOOD, found.reason)
    assert not isinstance(found, EnrolmentGranted), "only the owner of an agent asks this"
    return found


def change_of(request: Resize) -> AgreementResized:
    """Return the command of a resize."""
    return AgreementResized(
        request.agreement_id,
        request.cores,
        request.until,
        request.quote_only,
        request.price,
        request.max_cost,
        request.together,
    )


def changed_by(request: Resize) -> tuple[str, ...]:
    """Return the agreements that a resize changes, each once."""
    return tuple(dict.fromkeys((request.agreement_id, *request.together)))


def has_changed(progress: pr.Progress, request: Resize) -> bool:
    """Return whether a progress is the end of one of the changes of a resize."""
    return isinstance(progress, pr.AmendmentEnded) and progress.outcome.agreement_id in changed_by(request)


def changes_ended(request: Resize, ended: Mapping[str, AmendmentOutcome]) -> pr.AmendmentEnded | ChangesEnded:
    """Return the answer to a resize, given the outcome by agreement."""
    if not request.together:
        return pr.AmendmentEnded(ended[request.agreement_id])
    return ChangesEnded(tuple(ended[each] for each in changed_by(request)))


def unknown(request_id: str) -> Refused:
    """Return the refusal for an unknown request."""
    return Refused(MarketRefusalCode.UNKNOWN_REQUEST, f"unknown request {request_id}")


def told(progress: pr.Progress, file_of: FileOf) -> Event | None:
    """Return a party's progress as the event for its owner; None if it does not concern the owner."""
    match progress:
        case pr.RequestEnded(outcome):
            return ended(outcome, file_of)
        case pr.RoundOpened() | pr.RoundClosed() | pr.ApprovalAsked() | pr.UnitAdvanced() | pr.CancellationEnded():
            return progress
        case pr.ClockCompared() | pr.UnitMoved() | pr.AmendmentAdvanced() | pr.AmendmentEnded():
            return progress
        case pr.QueryAnswered() | pr.GuestFailed() | pr.SlotLost() | pr.KeeperOrdered() | pr.RecordsMissing():
            return None
        case pr.EnrolmentAnswered() | pr.RevocationsFollowed() | pr.MembershipEnded():
            return None
        case _:
            assert_never(progress)


def request_of(progress: pr.Progress) -> str:
    """Return the id of the request that a progress belongs to, or ""."""
    match progress:
        case pr.RequestEnded(outcome):
            return outcome.request_id
        case pr.RoundOpened() | pr.RoundClosed() | pr.ApprovalAsked() | pr.UnitAdvanced() | pr.UnitMoved():
            return progress.request_id
        case _:
            return ""


def ended(outcome: RequestOutcome, file_of: FileOf) -> RequestEnded:
    """Return the event for the end of a request, with the files of the agreements."""
    files = {unit.agreement_id: _text(file_of(unit.agreement_id)) for unit in outcome.units if unit.agreement_id}
    return RequestEnded(outcome, files)


def requests_of(party: UserParty) -> RequestsListed:
    """List all requests of a user."""
    money = by_request(agreements_of(party, _no_file, _no_file).agreements)
    return RequestsListed(
        tuple(
            RequestStanding(
                request_id,
                purchase.stage,
                purchase.doubt,
                len(purchase.request.units),
                purchase.started_at,
                purchase.outcome,
                rule=purchase.options.rule or PAPER_RULE,
                charged=money.get(request_id, (0, 0))[0],
                returned=money.get(request_id, (0, 0))[1],
            )
            for request_id, purchase in party.purchases.items()
        ),
        party.clock,
    )


def jobs_of(party: UserParty) -> JobsListed:
    """List all jobs of a user with their last known state."""
    return JobsListed(
        tuple(
            JobStanding(
                job.order,
                job.request_id,
                job.resource,
                job.ordered_at,
                job.word if isinstance(job.word, JobStatus) else None,
                job.word if isinstance(job.word, JobRefused) else None,
                party.agreement_state(job.order.agreement_id),
            )
            for job in party.jobs.known
        )
    )


def agreements_of(party: UserParty, file_of: FileOf, payment_file_of: FileOf) -> AgreementsListed:
    """List all agreements of a user."""
    doubts = party.doubts()
    return AgreementsListed(
        tuple(
            AgreementStanding(
                agreement,
                party.agreement_state(agreement_id),
                doubts.get(agreement_id, ""),
                _text(file_of(agreement_id)),
                _text(payment_file_of(agreement_id)),
                amendments=party.changes.history.posted(agreement_id),
                moved=party.moves.last.get(agreement_id),
                refunded=refund.refund if (refund := party.changes.history.ended.get(agreement_id)) else 0,
                cause=refund.cause if refund else "",
            )
            for agreement_id, agreement in party.agreements.items()
        )
    )


def _no_file(_: str) -> None:
    return None


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
