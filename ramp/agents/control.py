"""The control channels of User Agents and of the keeper's agent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from ramp.agents.control_channel import ControlSocket
from ramp.agents.roles import CommandedAgent, UserAgent
from ramp.control import answering
from ramp.control.answering import full_name
from ramp.control.codec import decode_request
from ramp.control.events import Done, Event, RequestShown, Submitted, Watching
from ramp.control.requests import (
    Approve,
    AskOverview,
    Cancel,
    Deposit,
    ListAgreements,
    ListJobs,
    ListRequests,
    OrderRefund,
    Request,
    Resize,
    ShowRequest,
    Submit,
    Watch,
    Withdraw,
)
from ramp.errors import ConfigurationError, ControlLineError
from ramp.model.contents import ChangePosted, DepositMade
from ramp.model.money import credits_text
from ramp.model.request import RequestForQuotation
from ramp.protocol import events as ev
from ramp.protocol import progress as pr
from ramp.protocol.outcome import AmendmentOutcome, RequestOutcome
from ramp.protocol.records import RequestConcluded
from ramp.protocol.user.evaluator import BIDS_MAX, BIDS_SHOWN
from ramp.rfql.request_for_quotation import write_request
from ramp.rfql.xml.parser import DOCUMENT_BYTES_MAX, check_size
from ramp.runtime.configuration_changes.audit_log import add_line
from ramp.runtime.identifiers import RandomIds
from ramp.runtime.state_folder import StateFolder

BID_BYTES: Final = 60
"""Maximum bytes of a bid in a call for proposals, besides the name of its resource."""


class ControlChannel(ControlSocket):
    """Serves the control socket of an agent that has an owner."""

    def __init__(self, agent: CommandedAgent, path: Path) -> None:
        super().__init__(str(agent.jid), path)
        self._commanded = agent
        self._ids = RandomIds()

    async def _ask(self, query_id: str, command: ev.Command) -> Event:
        def wanted(progress: pr.Progress) -> bool:
            return isinstance(progress, pr.QueryAnswered) and progress.query_id == query_id

        async with self._progress(wanted) as queue:
            await self._commanded.command(command)
            progress = await queue.get()
        assert isinstance(progress, pr.QueryAnswered)
        return answering.answer(progress)

    @contextlib.asynccontextmanager
    async def _progress(self, wanted: Callable[[pr.Progress], bool]) -> AsyncIterator[asyncio.Queue[pr.Progress]]:
        queue: asyncio.Queue[pr.Progress] = asyncio.Queue()

        def watcher(progress: pr.Progress) -> None:
            if wanted(progress):
                queue.put_nowait(progress)

        self._commanded.watchers.add(watcher)
        try:
            yield queue
        finally:
            self._commanded.watchers.discard(watcher)


class UserControl(ControlChannel):
    """Serves the control socket of a User Agent; `state` has the paths of its agreements."""

    def __init__(self, agent: UserAgent, path: Path, state: StateFolder) -> None:
        super().__init__(agent, path)
        self._agent = agent
        self._state = state

    async def answer(self, request: Request, reader: asyncio.StreamReader, who: str) -> AsyncIterator[Event]:
        match request:
            case Submit():
                async for event in self._submit(request, reader):
                    yield event
            case Watch(""):
                async for event in self._watch_all(reader):
                    yield event
            case Watch(request_id):
                async for event in self._watch(request_id, reader):
                    yield event
            case Withdraw(request_id):
                yield await self._withdraw(request_id)
            case ListRequests():
                yield answering.requests_of(self._agent.party)
            case ShowRequest(request_id):
                purchase = self._agent.party.purchases.get(request_id)
                outcome = purchase.outcome if purchase is not None else None
                yield RequestShown(None if outcome is None else self._outcome(outcome))
            case ListAgreements():
                yield answering.agreements_of(self._agent.party, self._agreement_file, self._payment_file)
            case Cancel() | Resize():
                yield await (self._resize(request) if isinstance(request, Resize) else self._cancel(request))
            case ListJobs():
                yield answering.jobs_of(self._agent.party)
            case _ if isinstance(request, answering.Question):
                query_id = answering.query_of(request, self._ids.new)
                command = answering.question(request, query_id, str(self._agent.jid.domain))
                yield await self._ask(query_id, command)

    # -- requests ------------------------------------------------------------------------------------------------

    async def _submit(self, request: Submit, reader: asyncio.StreamReader) -> AsyncIterator[Event]:
        command = answering.submission(request, request.request_id or self._ids.new("request"))
        self._check_size(command.request)
        yield Submitted(command.request_id, command.request.warnings)
        if command.request_id in self._agent.party.purchases:  # submitted again: continue with its events
            async for event in self._watch(command.request_id, reader):
                yield event
            return
        clock = self._agent.party.clock
        if clock is not None and clock.wrong:
            yield clock
        async for event in self._follow_request(command.request_id, command, reader):
            yield event

    def _check_size(self, request: RequestForQuotation) -> None:
        """Refuse a request whose calls for proposals, with bids of other resources, could become too large."""
        bids = min(BIDS_MAX, BIDS_SHOWN * len(request.units))
        room = bids * (BID_BYTES + len(self._agent.host.name.encode()))
        check_size(write_request(request), limit=DOCUMENT_BYTES_MAX - room)

    async def _watch(self, request_id: str, reader: asyncio.StreamReader) -> AsyncIterator[Event]:
        purchase = self._agent.party.purchases.get(request_id)
        if purchase is None:
            yield answering.unknown(request_id)
        elif purchase.outcome is not None:
            yield answering.ended(self._outcome(purchase.outcome), self._agreement_file)
        else:
            async for event in self._follow_request(request_id, None, reader):
                yield event

    def _outcome(self, outcome: RequestOutcome) -> RequestOutcome:
        journal = self._agent.host.ports.journal
        written = journal.records_of(outcome.request_id) if journal is not None else ()
        return next((each.outcome for each in written if isinstance(each, RequestConcluded)), outcome)

    async def _follow_request(
        self, request_id: str, command: ev.Command | None, reader: asyncio.StreamReader
    ) -> AsyncIterator[Event]:
        def wanted(progress: pr.Progress) -> bool:
            return isinstance(progress, pr.ClockCompared) or answering.request_of(progress) == request_id

        async with self._progress(wanted) as queue:
            if command is not None:
                await self._agent.command(command)
            elif (asked := self._agent.party.purchases[request_id].asked) is not None:
                queue.put_nowait(asked)  # the question is older than this connection
            async for progress in self._until_ended(request_id, queue, reader):
                event = answering.told(progress, self._agreement_file)
                assert event is not None, "all progress of a request has an event"
                yield event

    async def _until_ended(
        self, request_id: str, queue: asyncio.Queue[pr.Progress], reader: asyncio.StreamReader
    ) -> AsyncIterator[pr.Progress]:
        """Yield the progress of a request until it ends or the client disconnects, and pass on the client's approval.

        A client that disconnects has not answered. The next client that watches the request is asked again, until the
        auction's time limit for an approval.
        """
        hearing = asyncio.create_task(queue.get())
        answer: asyncio.Task[bytes] | None = None
        try:
            while True:
                waited = {hearing} if answer is None else {hearing, answer}
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if answer is not None and answer.done():
                    line, answer = answer.result(), None
                    if not line:
                        return
                    await self._agent.command(ev.OffersApproved(request_id, _approved(line)))
                if hearing.done():
                    progress = hearing.result()
                    yield progress
                    if isinstance(progress, pr.RequestEnded):
                        return
                    if isinstance(progress, pr.ApprovalAsked) and answer is None:
                        answer = asyncio.create_task(reader.readline())
                    hearing = asyncio.create_task(queue.get())
        finally:
            hearing.cancel()
            if answer is not None:  # only one task may read from the connection
                answer.cancel()
                await asyncio.wait({answer})

    async def _watch_all(self, reader: asyncio.StreamReader) -> AsyncIterator[Event]:
        gone = asyncio.create_task(reader.read(1))
        try:
            async with self._progress(lambda progress: True) as queue:
                yield Watching()
                while not gone.done():
                    progress = asyncio.create_task(queue.get())
                    await asyncio.wait({progress, gone}, return_when=asyncio.FIRST_COMPLETED)
                    if not progress.done():
                        progress.cancel()
                        return
                    event = answering.told(progress.result(), self._agreement_file)
                    if event is not None:
                        yield event
        finally:
            gone.cancel()

    async def _withdraw(self, request_id: str) -> Event:
        if request_id not in self._agent.party.purchases:
            return answering.unknown(request_id)
        await self._agent.command(ev.RequestWithdrawn(request_id))
        return Done()

    async def _cancel(self, request: Cancel) -> Event:
        agreement_id, reason = request.agreement_id, request.reason or "cancelled by the user"

        def wanted(progress: pr.Progress) -> bool:
            return isinstance(progress, pr.CancellationEnded) and progress.outcome.agreement_id == agreement_id

        async with self._progress(wanted) as queue:
            await self._agent.command(ev.AgreementCancelled(agreement_id, reason))
            ended = await queue.get()
        assert isinstance(ended, pr.CancellationEnded)
        return ended

    async def _resize(self, request: Resize) -> Event:
        ended: dict[str, AmendmentOutcome] = {}
        async with self._progress(lambda told: answering.has_changed(told, request)) as queue:
            await self._agent.command(answering.change_of(request))
            while len(ended) < len(answering.changed_by(request)):
                told = await queue.get()
                assert isinstance(told, pr.AmendmentEnded)
                ended[told.outcome.agreement_id] = told.outcome
        return answering.changes_ended(request, ended)

    def _agreement_file(self, agreement_id: str) -> Path | None:
        path = self._state.agreement(str(self._agent.jid.user), agreement_id)
        return path if path.exists() else None

    def _payment_file(self, agreement_id: str) -> Path | None:
        path = self._state.payment(str(self._agent.jid.user), agreement_id)
        return path if path.exists() else None


def _approved(line: bytes) -> bool:
    try:
        answered = decode_request(line)
    except ControlLineError:
        return False
    return isinstance(answered, Approve) and answered.approved


class KeeperControl(ControlChannel):
    """Serves the control socket of the keeper's agent (paper, section 6.3); `state` has the market's audit log."""

    def __init__(self, agent: CommandedAgent, path: Path, state: StateFolder) -> None:
        super().__init__(agent, path)
        self._state = state

    async def answer(self, request: Request, reader: asyncio.StreamReader, who: str) -> AsyncIterator[Event]:
        match request:
            case Deposit():
                yield await self._deposit(request, who)
            case OrderRefund():
                yield await self._refund(request, who)
            case AskOverview(since, until):
                query_id = self._ids.new("query")
                yield await self._ask(query_id, ev.OverviewAsked(query_id, since, until))

    async def _deposit(self, order: Deposit, who: str) -> Event:
        if order.amount <= 0:
            raise ConfigurationError(f"the deposit must be above 0 minor units, got {order.amount}")
        deposit_id = order.deposit_id or self._ids.new("deposit")
        account = full_name(order.account, str(self._commanded.jid.domain))
        done = await self._ask(deposit_id, ev.DepositOrdered(deposit_id, account, order.amount, order.memo))
        if isinstance(done, DepositMade):
            what = f"{credits_text(done.amount)} credits to {account} ({deposit_id})"
            add_line(self._state, self._commanded.now(), who, "deposit", account, what)
        return done

    async def _refund(self, order: OrderRefund, who: str) -> Event:
        done = await self._ask(order.agreement_id, ev.RefundOrdered(order.agreement_id, order.reason))
        if isinstance(done, ChangePosted):
            what = f"{credits_text(done.refund)} credits refunded: {order.reason}"
            add_line(self._state, self._commanded.now(), who, "refund", order.agreement_id, what)
        return done
