"""A market for programs that wait: every method blocks until the answer is there."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from ramp.client import dialogues
from ramp.client.access import Access
from ramp.client.dialogues import Dialogue
from ramp.client.following import Approver, Following, OnEvent, nobody_approves
from ramp.client.jobs.job import Job, job_of
from ramp.client.jobs.work import work_of
from ramp.client.line import Line, refused
from ramp.client.machine_state import MachineState
from ramp.client.request import Requestable
from ramp.client.results import Account, Cancelled, Purchase, Reservation, Resized, Resource, with_machines
from ramp.client.submission import ROUND_TIME, ROUNDS, Approve, MarketUser, Prefer, auction_options
from ramp.client.times import duration_of
from ramp.control.events import Event, Refused, RequestEnded, RequestStanding
from ramp.control.requests import Approve as Approved
from ramp.control.requests import Resize, Submit, Watch
from ramp.errors import MarketRefused, RampError, TransportError
from ramp.model.contents.jobs import STDOUT
from ramp.model.instant import HOUR
from ramp.runtime.identifiers import RandomIds

MACHINES_LIMIT_S: Final = 25.0
"""How long all machines together may take to say how they are, in seconds."""

T = TypeVar("T")


def converse(line: Line, dialogue: Dialogue[T]) -> T:
    """Hold a dialogue over a connection; returns its result.

    Raises:
        RampError: what the dialogue raises, or the connection.
    """
    try:
        request = next(dialogue)
        while True:
            *_, last = line.events(request)
            request = dialogue.send(last)
    except StopIteration as end:
        result: T = end.value
        return result


class Market(MarketUser[Access]):
    """A market as one of its users; `ramp.connect` and `ramp.launch` make one, and a `with` block closes it.

    Nothing stays open between two calls. Whatever is refused or fails raises a `ramp.RampError`; its subclasses say
    what: `NoMarket` (none is running), `MarketRefused` with a `code` (a party says no), `ConfigurationError` and
    `DocumentError` (bad input), other `TransportError` (an agent that ended or does not listen). How an auction ends
    is no error: the `status` of a `Purchase` says it.

    Args:
        access: where the market is.
        close: called when the block ends.
    """

    def __init__(self, access: Access, close: Callable[[], None] = lambda: None) -> None:
        super().__init__(access)
        self._close = close

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop a market of `ramp.launch`; disconnect from a market of `ramp.connect`."""
        self._close()

    # -- buying --------------------------------------------------------------------------------------------------

    def submit(
        self,
        *requests: Requestable,
        rounds: int = ROUNDS,
        round_time: str | timedelta = ROUND_TIME,
        prefer: Prefer = "cheapest",
        approve: Approve = "auto",
        max_cost: int | str | Decimal | None = None,
        rule: str = "",
        on_event: OnEvent | None = None,
    ) -> Purchase:
        """Auction requests as one, buy the best offers by two-phase commit, pay, and return the result.

        All units are bought or none. A User Agent that is restarted meanwhile is waited for. Ctrl-C withdraws the
        request, waits for its end, and is raised unless everything was bought before.

        Args:
            *requests: from `ramp.request`, or files of RFQL.
            rounds: rounds of bidding.
            round_time: limit of a round; it closes as soon as every answer is in.
            prefer: how offers are ranked.
            approve: `"auto"`, `"best-offer"`, or a function that says whether to buy, given a `ramp.ApprovalAsked`
                with the offers, whether each meets the request, and what would be paid for it.
            max_cost: maximum total cost in credits.
            rule: name of the auction rule (`ramp plugins list rule`), or `FILE.py:Name`; the market's own where empty.
            on_event: called with each event: `ramp.RoundOpened`, `ramp.RoundClosed` and so on.

        Raises:
            RampError: see the class.
            KeyboardInterrupt: after a withdrawal.
        """
        options = auction_options(
            rounds=rounds, round_time=round_time, prefer=prefer, approve=approve, max_cost=max_cost, rule=rule
        )
        asked = approve if callable(approve) else nobody_approves
        return self._purchase(self._submission(requests, options), asked, on_event)

    def quote(
        self,
        *requests: Requestable,
        rounds: int = ROUNDS,
        round_time: str | timedelta = ROUND_TIME,
        prefer: Prefer = "cheapest",
        rule: str = "",
        on_event: OnEvent | None = None,
    ) -> Purchase:
        """Auction requests, but stop before accepting: nothing is held or bought; the arguments are `submit`'s.

        Raises:
            RampError: see the class.
        """
        options = auction_options(rounds=rounds, round_time=round_time, prefer=prefer, quote_only=True, rule=rule)
        return self._purchase(self._submission(requests, options), nobody_approves, on_event)

    def _purchase(self, submitted: Submit, approve: Approver, on_event: OnEvent | None) -> Purchase:
        following = Following.begin(submitted)
        ended = self.follow(following, approve=approve, on_event=on_event)
        purchase = self._purchase_of(ended)
        if following.interrupted and not purchase.committed:
            raise KeyboardInterrupt
        return purchase

    def follow(
        self,
        following: Following,
        *,
        approve: Approver = nobody_approves,
        on_event: OnEvent | None = None,
        on_interrupt: Callable[[], None] = lambda: None,
        on_lost: Callable[[], None] = lambda: None,
    ) -> RequestEnded:
        """Submit a request and follow it to its end, with callbacks.

        Args:
            following: the request.
            approve: asked about offers.
            on_event: called with each event.
            on_interrupt: told of the first Ctrl-C, before the request is withdrawn.
            on_lost: told that the User Agent has ended in the middle, before it is waited for.

        Raises:
            RampError: see the class.
            KeyboardInterrupt: for the second Ctrl-C; the first withdraws and waits.
        """
        line = self.access.open()
        while True:
            try:
                with line:
                    for event in line.events(following.request):
                        if on_event is not None:
                            on_event(event)
                        asked = following.heard(event)
                        if asked is not None:
                            try:
                                approved = approve(asked)
                            except Exception:  # who is not there to answer would be waited for
                                line.send(Approved(False))
                                raise
                            line.send(Approved(approved))
            except TransportError as error:
                following.lost(error)
                on_lost()
            except KeyboardInterrupt:
                if following.interrupted:
                    raise
                following.withdrawn()
                on_interrupt()
                with self.access.reopen() as other, contextlib.suppress(MarketRefused):  # it never was, or has ended
                    converse(other, dialogues.withdraw(following.submission.request_id))
            if following.ended is not None:
                return following.ended
            line = self.access.reopen()

    def watch(self, request_id: str = "") -> Iterator[Event]:
        """Iterate over events: of one request until it ends, or of all requests of this user, without end.

        Yields:
            `ramp.Submitted`, `RoundOpened`, `RoundClosed`, `ApprovalAsked`, `UnitAdvanced`, `RequestEnded`, and
            `UnitMoved` of what a resource has moved to other nodes later; their times are integers of microseconds
            (`ramp.to_datetime`).

        Raises:
            RampError: see the class.
        """
        with self.access.open() as line:
            for event in line.events(Watch(request_id)):
                if isinstance(event, Refused):
                    raise refused(event)
                yield event

    # -- what one has --------------------------------------------------------------------------------------------

    def reservations(self, *, everything: bool = False) -> tuple[Reservation, ...]:
        """Return reservations by start; with `everything` also cancelled and void ones."""
        return self.ask(dialogues.reservations(self.access.domain, everything=everything))

    def requests(self) -> tuple[RequestStanding, ...]:
        """Return all requests with their state, in the order of submission."""
        return self.ask(dialogues.requests())

    def cancel(self, any_id: str, reason: str = "") -> tuple[Cancelled, ...]:
        """Give back an agreement, a reservation, or all that a request has bought; or withdraw one that is going on.

        Args:
            any_id: of any of these; it may be cut short as long as it is unique.
            reason: for the resource and the bank to keep.
        """
        return self.ask(dialogues.cancel(any_id, reason))

    def resize(
        self,
        any_id: str,
        *,
        cores: int | None = None,
        until: str | datetime | None = None,
        quote_only: bool = False,
        price: int | None = None,
        max_cost: int | None = None,
    ) -> Resized:
        """Make a bought slot smaller or larger; returns when the bank has posted it, or it has come to nothing.

        The seller sets the price of an addition; see it first with `quote_only`.

        Args:
            any_id: of a reservation or agreement; it may be cut short as long as it is unique.
            cores: that it shall have; as many as it has by default.
            until: its end; the one that it has by default.
            quote_only: only tell what it would give back or cost.
            price: maximum price of the addition in credits per core hour; by default the limit of the request.
            max_cost: maximum total cost of the addition in hundredths of a credit; by default only `price` limits it.

        Raises:
            ConfigurationError: if the id means nothing or several slots, or `until` is no moment.
        """
        end = None if until is None else dialogues.moment_given(until, self.access.now())
        wish = Resize("", cores, end, quote_only, price, max_cost)
        return self.ask(dialogues.resize(any_id, wish))

    def resize_together(
        self,
        any_ids: Sequence[str],
        *,
        cores: int | None = None,
        until: str | datetime | None = None,
        quote_only: bool = False,
        price: int | None = None,
        max_cost: int | None = None,
    ) -> tuple[Resized, ...]:
        """Add to several bought slots at once, paid by one order: all or none; see `resize`.

        Args:
            any_ids: of reservations or agreements; they may be cut short as long as they are unique.
            cores: that each shall have; as many as it has by default.
            until: the end of each; the one that it has by default.
            quote_only: only tell what it would cost.
            price: see `resize`.
            max_cost: maximum total cost in hundredths of a credit.
        """
        end = None if until is None else dialogues.moment_given(until, self.access.now())
        wish = Resize("", cores, end, quote_only, price, max_cost)
        return self.ask(dialogues.resize_together(any_ids, wish))

    def balance(self) -> Account:
        """The bank's answer to a query signed with one's own key."""
        return self.ask(dialogues.account())

    def statement(self, since: str | datetime | None = None, until: str | datetime | None = None) -> Account:
        """The same with every payment, refund and deposit between two moments (default: all).

        Raises:
            ConfigurationError: if a time is invalid, or the first is after the last.
        """
        return self.ask(dialogues.statement(since, until, self.access.now()))

    # -- jobs on what one has ------------------------------------------------------------------------------------

    def launch(
        self,
        any_id: str,
        command: str | Sequence[str] = (),
        *,
        script: str | Path | None = None,
        inputs: Sequence[str | Path] = (),
        cores: int | None = None,
        together: bool = True,
    ) -> tuple[Job, ...]:
        """Run a command or a script on reservations: one job on each slot of an id.

        The units of a request begin together where their slots overlap, and are told of each other by RAMP_UNIT,
        RAMP_UNITS and RAMP_PEERS. The resource runs a job once, as the local account that its site maps the user to.

        Args:
            any_id: an agreement, a reservation, or a request.
            command: words, or one text as a shell would split it; arguments of the script where there is one.
            script: a file that is staged and run.
            inputs: further files that are staged into the job's folder.
            cores: number of cores on each slot; by default all.
            together: whether units begin together.

        Raises:
            MarketRefused: if a resource does not run it; jobs on other units are ended again.
            ConfigurationError: if there is nothing to run, or nothing to run it on, or it is beyond the limits.
        """
        work = work_of(command, script=script, inputs=inputs, cores=cores, together=together)
        found = self.ask(dialogues.launch(any_id, work, RandomIds().new))
        return tuple(job_of(each, self.access.domain) for each in found)

    def jobs(self) -> tuple[Job, ...]:
        """Return all jobs with their state, in the order of launching."""
        return tuple(job_of(each, self.access.domain) for each in self.ask(dialogues.jobs()))

    def job(self, any_id: str) -> Job:
        """One job by its name, or the beginning of it."""
        return job_of(self.ask(dialogues.job(any_id)), self.access.domain)

    def job_output(self, any_id: str, name: str = STDOUT, offset: int = 0) -> bytes:
        """What a job has printed (`stdout`, `stderr`) or left in a file so far, from an offset on."""
        return self.ask(dialogues.job_output(any_id, name, offset))

    def cancel_job(self, any_id: str) -> Job:
        """End a job; its slot stays bought."""
        return job_of(self.ask(dialogues.cancel_job(any_id)), self.access.domain)

    # -- who sells -----------------------------------------------------------------------------------------------

    def resources(self, *, machines: bool = False) -> tuple[Resource, ...]:
        """Who sells now; with `machines` each is also asked how its machine is.

        A machine that does not answer in time has the `machine` None.
        """
        found = self.ask(dialogues.resources(self.access.domain, draining_too=True))
        return with_machines(found, self.machines([each.address for each in found])) if machines else found

    def machine(self, resource: str, horizon: str | timedelta = "24h") -> MachineState:
        """How a resource's machine is, and its projected load over a horizon."""
        return self.ask(dialogues.machine(resource, duration_of(horizon, "horizon")))

    def machines(self, names: Sequence[str], limit_s: float = MACHINES_LIMIT_S) -> dict[str, MachineState]:
        """Many machines, asked at the same time; those that do not answer within a limit (seconds) are missing."""
        found: dict[str, MachineState] = {}

        def ask(name: str) -> None:
            with contextlib.suppress(RampError, OSError):
                found[name] = self.ask(dialogues.machine(name, HOUR))

        threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in names]
        for thread in threads:
            thread.start()
        end = time.monotonic() + limit_s
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        return dict(found)

    def ask(self, dialogue: Dialogue[T]) -> T:
        """Hold a dialogue over a connection of its own.

        Raises:
            RampError: see the class.
        """
        with self.access.open() as line:
            return converse(line, dialogue)
