"""The dialogues with an agent behind each method of a market, without any I/O.

A dialogue is a generator: it yields requests, is sent the last event of each, and returns the result. `converse` holds
one over a connection.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ramp.client import results
from ramp.client.access import Line, refused
from ramp.client.identifiers import belonging, matching, not_one
from ramp.client.jobs import FETCHED_BYTES_MAX, LISTED_MAX, JobFile, files_of, one_job, orders_of, save
from ramp.client.machine_state import MachineState, parse_snapshot
from ramp.client.results import Account, Cancelled, Reservation, Resized, Resource
from ramp.control import events
from ramp.control.events import MarketChanged
from ramp.control.requests import ListAgreements, ListJobs, ListRequests, OwnerRequest, Request, Watch
from ramp.errors import ConfigurationError, ControlLineError
from ramp.model import contents as c
from ramp.model.contents.directory import DRAINING_SERVICE
from ramp.model.contents.jobs import FOLDER, OUTPUT_CHUNK_BYTES, STDOUT, STREAMS, path_problem
from ramp.model.instant import DURATION_END, SECOND, Duration, Instant, local_iso
from ramp.model.request import NUMBER_MAX
from ramp.protocol import events as ev
from ramp.protocol.events import AgreementResized
from ramp.protocol.outcome import ALREADY_CANCELLED, RequestOutcome, RequestStatus
from ramp.protocol.progress import RequestEnded

OPEN_STATES = ("settling", "active", "cancelling")
"""States of agreements that still mean something; the others are history."""

T = TypeVar("T")
E = TypeVar("E")
Dialogue = Generator[Request, events.Event, T]


async def converse(line: Line, dialogue: Dialogue[T]) -> T:
    """Hold a dialogue over a connection; returns its result.

    Raises:
        RampError: from the dialogue or the connection.
    """
    try:
        request = next(dialogue)
        while True:
            *_, last = [event async for event in line.events(request)]
            request = dialogue.send(last)
    except StopIteration as end:
        result: T = end.value
        return result


def _expected(event: events.Event, kind: type[E]) -> E:
    """Return the event if it has the expected kind; raise the refusal or a `ControlLineError` otherwise."""
    if isinstance(event, events.Refused):
        raise refused(event)
    if not isinstance(event, kind):
        raise ControlLineError(f"unexpected answer of the agent: got {type(event).__name__}, expected {kind.__name__}")
    return event


def account(since: Instant | None = None, until: Instant | None = None) -> Dialogue[Account]:
    """Ask for the balance, and for postings between two instants if one is given."""
    return results.account_of(_expected((yield ev.AccountAsked("", since, until)), c.AccountStatement))


def machine(resource: str, horizon: Duration) -> Dialogue[MachineState]:
    """Ask a resource for the state of its machine."""
    status = _expected((yield ev.MachineAsked("", resource, horizon)), c.MachineStatus)
    return parse_snapshot(status.snapshot, resource)


def resources(domain: str, *, draining_too: bool = False) -> Dialogue[tuple[Resource, ...]]:
    """Ask the directory for the registered resources, and on request for those that drain."""
    listing = _expected((yield ev.ResourcesAsked("")), c.DirectoryListing)
    draining: tuple[str, ...] = ()
    if draining_too:
        draining = _expected((yield ev.ResourcesAsked("", DRAINING_SERVICE)), c.DirectoryListing).names
    return tuple(Resource(results.short_name(name, domain), name, draining=name in draining) for name in listing.names)


def listing() -> Dialogue[events.RequestsListed]:
    """List all requests of the user and the clock comparison of its agent."""
    return _expected((yield ListRequests()), events.RequestsListed)


def requests() -> Dialogue[tuple[events.RequestStanding, ...]]:
    """List all requests of the user."""
    return (yield from listing()).requests


def outcome(request_id: str) -> Dialogue[RequestOutcome | None]:
    """Return the result of a request that has ended, with its rounds; None if the agent has archived it."""
    ended = yield Watch(request_id)
    if isinstance(ended, events.Refused) and ended.code is events.MarketRefusalCode.UNKNOWN_REQUEST:
        return None
    return _expected(ended, RequestEnded).outcome


def agreements() -> Dialogue[tuple[events.AgreementStanding, ...]]:
    """List everything that the user has bought."""
    return _expected((yield ListAgreements()), events.AgreementsListed).agreements


def reservations(domain: str, *, everything: bool) -> Dialogue[tuple[Reservation, ...]]:
    """List reservations by start; with `everything` also cancelled and void ones."""
    listed = yield from agreements()
    found = [results.reservation_of(each, domain) for each in listed if everything or each.state in OPEN_STATES]
    return tuple(sorted(found, key=lambda each: (each.start, each.agreement_id)))


def approve(request_id: str, approved: bool, sellers: Sequence[tuple[int, str]] = ()) -> Dialogue[None]:
    """Answer `ApprovalAsked`; too late, it changes nothing. With sellers of units, by number, accept their quote."""
    _expected((yield ev.OffersApproved(request_id, approved, tuple(sellers))), events.Done)


def withdraw(request_id: str) -> Dialogue[None]:
    """Withdraw a running request."""
    _expected((yield ev.RequestWithdrawn(request_id)), events.Done)


def cancel(any_id: str, reason: str) -> Dialogue[tuple[Cancelled, ...]]:
    """Cancel the agreements that an id means, or withdraw a running request; again, it changes nothing."""
    asked = yield from requests()
    meant = matching(asked, any_id, lambda each: each.request_id)
    going_on = [each for each in meant if each.outcome is None]
    if len(going_on) == 1:
        request_id = going_on[0].request_id
        yield from withdraw(request_id)
        return (Cancelled("", request_id, done=False, withdrawn=True),)
    if len(meant) == 1 and going_on == [] and _withdrawn(meant[0]):
        detail = "the request was withdrawn or declined before; it bought nothing"
        return (Cancelled("", meant[0].request_id, done=False, withdrawn=True, code=ALREADY_CANCELLED, detail=detail),)
    bought = yield from agreements()
    _, entries = belonging(any_id, asked, bought)
    if not entries:
        raise ConfigurationError(f"{any_id}: the request ended without a purchase, so there is nothing to cancel")
    if len(entries) > 1:
        entries = tuple(entry for entry in entries if entry.state in OPEN_STATES) or entries
    found = []
    for entry in entries:
        agreement = entry.agreement
        ended = _expected((yield ev.AgreementCancelled(agreement.agreement_id, reason)), events.ChangesEnded)
        found += [
            Cancelled(
                each.agreement_id,
                agreement.request_id,
                each.done,
                refund=each.refund,
                code=each.code,
                detail=each.detail,
            )
            for each in ended.outcomes
        ]
    return tuple(found)


def _withdrawn(standing: events.RequestStanding) -> bool:
    outcome = standing.outcome
    return outcome is not None and outcome.status is RequestStatus.REJECTED and not outcome.units


def resize(any_ids: Sequence[str], wish: AgreementResized) -> Dialogue[tuple[Resized, ...]]:
    """Resize the slots that several ids mean: all or none; more than one only to add."""
    if wish.cores is None and wish.until is None:
        raise ConfigurationError(f"{any_ids[0]}: no new size: give a number of cores, an end, or both")
    if wish.cores is not None and not 1 <= wish.cores <= NUMBER_MAX:
        raise ConfigurationError(f"cores must be 1 to {NUMBER_MAX}, got {wish.cores}")
    asked = yield from requests()
    bought = yield from agreements()
    meant: list[str] = []
    for any_id in any_ids:
        _, entries = belonging(any_id, asked, bought)
        if len(entries) > 1:
            entries = tuple(entry for entry in entries if entry.state in OPEN_STATES)
        if len(entries) != 1:
            found = f"{len(entries)} reservations" if entries else "no reservation that is active"
            raise ConfigurationError(f"{any_id}: the id means {found}, expected exactly one")
        latest = entries[0].agreement.offer.start + DURATION_END - SECOND
        if wish.until is not None and wish.until > latest:
            told = f"{local_iso(latest)} at the latest, got {local_iso(wish.until)}"
            raise ConfigurationError(f"{any_id}: the end must be {told}")
        meant.append(entries[0].agreement.agreement_id)
    first, *others = dict.fromkeys(meant)
    ended = yield replace(wish, agreement_id=first, together=tuple(others))
    return tuple(map(results.resized_of, _expected(ended, events.ChangesEnded).outcomes))


def jobs() -> Dialogue[tuple[events.JobStanding, ...]]:
    """List all jobs; those that have not ended are looked up at their resources where these answer."""
    listed = _expected((yield ListJobs()), events.JobsListed).jobs
    found = []
    for job in listed:
        if job.status is not None and not job.has_ended:
            answer = yield ev.JobAsked("", c.JobQuery(job.order.job_id, ""))
            found.append(replace(job, status=answer) if isinstance(answer, c.JobStatus) else job)
        else:
            found.append(job)
    return tuple(found)


def _one_job(any_id: str) -> Dialogue[events.JobStanding]:
    return one_job(_expected((yield ListJobs()), events.JobsListed).jobs, any_id)


def job(any_id: str) -> Dialogue[events.JobStanding]:
    """Return a job by its id or the beginning of it, as its resource reports it."""
    found = yield from _one_job(any_id)
    if found.has_ended:
        return found
    answer = yield ev.JobAsked("", c.JobQuery(found.order.job_id, ""))
    if isinstance(answer, events.Refused) and found.slot == "cancelled":
        return found  # its resource has forgotten the slot
    return replace(found, status=_expected(answer, c.JobStatus))


def launch(
    any_id: str, order: c.JobOrder, archive: bytes, new_id: Callable[[str], str], *, together: bool
) -> Dialogue[tuple[events.JobStanding, ...]]:
    """Order one job on each slot that an id means: an agreement, a reservation, or all units of a request.

    A slot that is a job in a queue may be ordered on before it starts and is paid. If an order is refused, the earlier
    ones are cancelled.
    """
    asked = yield from requests()
    bought = yield from agreements()
    _, entries = belonging(any_id, asked, bought)
    active = [
        each.amended
        for each in entries
        if each.state == "active" or (each.state == "settling" and each.agreement.offer.in_queue)
    ]
    if not active:
        raise ConfigurationError(f"{any_id}: no active reservation to launch on")
    orders = orders_of(active, order, new_id, together=together)
    for number, each in enumerate(orders):
        answer = yield from _ordered(each, archive)
        if isinstance(answer, events.Refused):
            for before in orders[:number]:
                yield ev.JobAsked("", c.JobCancellation(before.job_id, ""))
            raise refused(answer)
        _expected(answer, c.JobStatus)
    names = {each.job_id for each in orders}
    listed = _expected((yield ListJobs()), events.JobsListed).jobs
    return tuple(each for each in listed if each.order.job_id in names)


def _ordered(order: c.JobOrder, archive: bytes) -> Dialogue[events.Event]:
    """Send the archive of inputs in pieces, then the order; returns the last answer."""
    for offset in range(0, len(archive), OUTPUT_CHUNK_BYTES):
        data = base64.b64encode(archive[offset : offset + OUTPUT_CHUNK_BYTES]).decode("ascii")
        answer = yield ev.JobAsked("", c.JobInputPiece(order.job_id, order.agreement_id, offset, data))
        if isinstance(answer, events.Refused):
            return answer
        _expected(answer, c.JobOutput)
    return (yield ev.JobSubmitted(order))


def cancel_job(any_id: str) -> Dialogue[events.JobStanding]:
    """Cancel a job; one that has ended stays as it is."""
    found = yield from _one_job(any_id)
    if found.has_ended:
        return found
    status = _expected((yield ev.JobAsked("", c.JobCancellation(found.order.job_id, ""))), c.JobStatus)
    return replace(found, status=status)


def job_output(any_id: str, name: str = STDOUT, offset: int = 0) -> Dialogue[bytes]:
    """Read the output stream or file of a job from an offset to its present end."""
    _check_path(name)
    job_id = (yield from _one_job(any_id)).order.job_id
    found = bytearray()
    while True:
        piece = _expected((yield ev.JobAsked("", c.JobOutputQuery(job_id, "", name, offset + len(found)))), c.JobOutput)
        data = base64.b64decode(piece.data)
        found += data
        if not data or offset + len(found) >= piece.size:
            return bytes(found)
        if len(found) > FETCHED_BYTES_MAX:
            raise ConfigurationError(f"{name} is too large: expected at most {FETCHED_BYTES_MAX} bytes")


def _check_path(path: str) -> None:
    problem = path_problem(path)
    if problem:
        raise ConfigurationError(problem)


def job_news(any_id: str, name: str, offset: int) -> Dialogue[tuple[bytes, bool]]:
    """Return the next piece of a job's output, and whether nothing follows."""
    _check_path(name)
    found = yield from job(any_id)
    if found.status is None or (found.status.started_at is None and not found.has_ended):
        return b"", found.has_ended
    answer = yield ev.JobAsked("", c.JobOutputQuery(found.order.job_id, "", name, offset))
    if isinstance(answer, events.Refused) and found.status.started_at is None:
        return b"", True  # it never started, so it has no output
    data = base64.b64decode(_expected(answer, c.JobOutput).data)
    return data, found.has_ended and not data


def job_files(any_id: str) -> Dialogue[tuple[JobFile, ...]]:
    """List the streams and files of a job."""
    job_id = (yield from _one_job(any_id)).order.job_id
    found: list[JobFile] = []
    while True:
        piece = _expected((yield ev.JobAsked("", c.JobOutputQuery(job_id, "", FOLDER, len(found)))), c.JobOutput)
        more = files_of(base64.b64decode(piece.data))
        found += more
        if not more or len(found) >= piece.size:
            return tuple(found)
        if len(found) > LISTED_MAX:
            raise ConfigurationError(f"the site's list of files does not end: expected at most {LISTED_MAX} entries")


def fetched(any_id: str, folder: Path, paths: Sequence[str] = ()) -> Dialogue[tuple[Path, ...]]:
    """Save files of a job below a folder: all but the two streams, or those that are named."""
    listed = yield from job_files(any_id)
    own_streams = {f"./{each}" for each in STREAMS}  # files that the job has called so
    named = {each if each in own_streams else each.removeprefix("./") for each in paths}
    wanted = tuple(each for each in listed if (each.path in named if named else each.path not in STREAMS))
    missing = named - {each.path for each in wanted}
    if missing:
        raise ConfigurationError(f"the job has no file {min(missing)!r}; list its files with `ramp jobs ID --files`")
    size = sum(each.size for each in wanted)
    if size > FETCHED_BYTES_MAX:
        raise ConfigurationError(
            f"the files are too large: got {size} bytes, expected at most {FETCHED_BYTES_MAX}; fetch fewer"
        )
    saved: tuple[Path, ...] = ()
    left = FETCHED_BYTES_MAX
    for each in wanted:
        data = yield from job_output(any_id, each.path)
        left -= len(data)
        if left < 0:  # they have grown, or their site has listed them as smaller than they are
            raise ConfigurationError(
                f"the files are too large: expected at most {FETCHED_BYTES_MAX} bytes; fetch fewer"
            )
        saved += (save(folder, each.path, data),)
    return saved


def deposit(account_name: str, amount: int, memo: str, deposit_id: str) -> Dialogue[c.DepositMade]:
    """Credit an account, as the keeper."""
    return _expected((yield ev.KeeperAsked(c.DepositOrder(deposit_id, account_name, amount, memo))), c.DepositMade)


def refund(any_id: str, reason: str) -> Dialogue[c.ChangePosted]:
    """Refund what is left of an agreement's payments, as the keeper; again, it changes nothing."""
    paid = {trade.agreement_id for trade in (yield from overview(None, None)).trades if trade.kind == "payment"}
    found = matching(sorted(paid), any_id, lambda each: each)
    if len(found) > 1:
        raise not_one(f"agreement {any_id!r}", found)
    return _expected((yield ev.KeeperAsked(c.RefundOrder(found[0] if found else any_id, reason))), c.ChangePosted)


def changed(request: OwnerRequest) -> Dialogue[MarketChanged]:
    """Change the market, as its owner."""
    return _expected((yield request), MarketChanged)


def overview(since: Instant | None, until: Instant | None) -> Dialogue[c.MarketOverview]:
    """Ask for all accounts and all trading, as the keeper."""
    return _expected((yield ev.KeeperAsked(c.OverviewQuery("", since, until))), c.MarketOverview)
