"""The control channels of User Agents and of the keeper's agent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from ramp.agents.control_channel import ControlSocket
from ramp.agents.roles import CommandedAgent, UserAgent
from ramp.control import answering
from ramp.control.answering import full_name
from ramp.control.events import Event, Submitted, Watching
from ramp.control.requests import KeeperRequest, Request, Submit, UserCommand, Watch
from ramp.model.contents import ChangePosted, DepositMade
from ramp.model.money import credits_text
from ramp.protocol import events as ev
from ramp.protocol import progress as pr
from ramp.protocol.outcome import RequestOutcome
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

    async def _ask(self, request: UserCommand | KeeperRequest) -> Event:
        asked = answering.asked(request, self._ids.new, str(self._commanded.jid.domain))
        async with self._progress(asked.wants) as queue:
            await self._commanded.command(asked.command)
            while not asked.is_answered:
                asked.take(await queue.get())
        return asked.answer

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
        party = self._agent.party
        if (found := answering.answer_at_once(request, party, self._files)) is not None:
            yield found
            return
        match request:
            case Submit():
                async for event in self._submit(request):
                    yield event
            case Watch(""):
                async for event in self._watch_all(reader):
                    yield event
            case Watch(request_id):
                async for event in self._watch(request_id):
                    yield event
            case _ if isinstance(request, UserCommand):
                yield await self._ask(request)

    # -- requests ------------------------------------------------------------------------------------------------

    async def _submit(self, request: Submit) -> AsyncIterator[Event]:
        command = answering.submission(request, request.request_id or self._ids.new("request"))
        # its calls for proposals, with bids of other resources, must not become too large
        bids = min(BIDS_MAX, BIDS_SHOWN * len(command.request.units))
        room = bids * (BID_BYTES + len(self._agent.host.name.encode()))
        check_size(write_request(command.request), limit=DOCUMENT_BYTES_MAX - room)
        yield Submitted(command.request_id, command.request.warnings)
        if command.request_id in self._agent.party.purchases:  # submitted again: continue with its events
            async for event in self._watch(command.request_id):
                yield event
            return
        clock = self._agent.party.clock
        if clock is not None and clock.wrong:
            yield clock
        async for event in self._follow_request(command.request_id, command):
            yield event

    async def _watch(self, request_id: str) -> AsyncIterator[Event]:
        outcome = self._agent.party.purchases[request_id].outcome
        if outcome is not None:
            yield answering.ended(self._outcome(outcome), self._files)
        else:
            async for event in self._follow_request(request_id, None):
                yield event

    def _outcome(self, outcome: RequestOutcome) -> RequestOutcome:
        journal = self._agent.host.ports.journal
        written = journal.records_of(outcome.request_id) if journal is not None else ()
        ends = [each.outcome for each in written if isinstance(each, RequestConcluded)]
        return replace(ends[-1], until=outcome.until) if ends else outcome  # a bought quote has two ends

    async def _follow_request(self, request_id: str, command: ev.Command | None) -> AsyncIterator[Event]:
        """Yield the events of a request until it ends; each connection is asked for approval until one has answered."""

        def wanted(progress: pr.Progress) -> bool:
            return isinstance(progress, pr.ClockCompared) or answering.request_of(progress) == request_id

        async with self._progress(wanted) as queue:
            if command is not None:
                await self._agent.command(command)
            elif (asked := self._agent.party.purchases[request_id].asked) is not None:
                queue.put_nowait(asked)  # the question is older than this connection
            ended = False
            while not ended:
                progress = await queue.get()
                event = answering.told(progress, self._files)
                assert event is not None, "all progress of a request has an event"
                yield event
                ended = isinstance(progress, pr.RequestEnded)

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
                    event = answering.told(progress.result(), self._files)
                    if event is not None:
                        yield event
        finally:
            gone.cancel()

    def _files(self, agreement_id: str) -> tuple[str | None, str | None]:
        user = str(self._agent.jid.user)
        agreement, payment = self._state.agreement(user, agreement_id), self._state.payment(user, agreement_id)
        return str(agreement) if agreement.exists() else None, str(payment) if payment.exists() else None


class KeeperControl(ControlChannel):
    """Serves the control socket of the keeper's agent (paper, section 6.3); `state` has the market's audit log."""

    def __init__(self, agent: CommandedAgent, path: Path, state: StateFolder) -> None:
        super().__init__(agent, path)
        self._state = state

    async def answer(self, request: Request, reader: asyncio.StreamReader, who: str) -> AsyncIterator[Event]:
        if not isinstance(request, KeeperRequest):
            return
        done = await self._ask(request)
        match done:
            case DepositMade() if isinstance(request, ev.DepositOrdered):
                account = full_name(request.account, str(self._commanded.jid.domain))
                what = f"{credits_text(done.amount)} credits to {account} ({done.deposit_id})"
                self._log(who, "deposit", account, what)
            case ChangePosted() if isinstance(request, ev.RefundOrdered):
                what = f"{credits_text(done.refund)} credits refunded: {request.reason}"
                self._log(who, "refund", request.agreement_id, what)
        yield done

    def _log(self, who: str, verb: str, name: str, what: str) -> None:
        add_line(self._state, self._commanded.now(), who, verb, name, what)
