"""The control channels of User Agents and of the keeper's agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from ramp.agents.control_channel import ControlSocket
from ramp.agents.roles import CommandedAgent, UserAgent
from ramp.control import answering
from ramp.control.answering import full_name
from ramp.control.events import Event
from ramp.control.requests import EVERYTHING, Request
from ramp.model.contents import ChangePosted, DepositMade, DepositOrder, RefundOrder
from ramp.model.money import credits_text
from ramp.protocol import events as ev
from ramp.protocol import progress as pr
from ramp.protocol.outcome import RequestOutcome
from ramp.protocol.records import RequestConcluded
from ramp.runtime.configuration_changes.audit_log import add_line
from ramp.runtime.identifiers import RandomIds
from ramp.runtime.state_folder import StateFolder


class ControlChannel(ControlSocket):
    """Serves the control socket of an agent that has an owner."""

    def __init__(self, agent: CommandedAgent, path: Path) -> None:
        super().__init__(str(agent.jid), path)
        self._commanded = agent
        self._ids = RandomIds()

    async def _held(
        self, steps: answering.Conversation, reader: asyncio.StreamReader | None = None
    ) -> AsyncIterator[Event]:
        """Yield the events of a conversation, with a reader until the client has closed the connection."""
        heard: asyncio.Queue[pr.Progress | None] = asyncio.Queue()
        self._commanded.watchers.add(heard.put_nowait)
        gone = None if reader is None else asyncio.create_task(reader.read(1))
        if gone is not None:
            gone.add_done_callback(lambda _: heard.put_nowait(None))
        try:
            step = answering.advance(steps)
            while step is not None:
                progress = None
                if isinstance(step, ev.Command):
                    await self._commanded.command(step)
                elif callable(step):
                    while (progress := await heard.get()) is not None and not step(progress):
                        continue
                    if progress is None:
                        return
                else:
                    yield step
                step = answering.advance(steps, progress)
        finally:
            self._commanded.watchers.discard(heard.put_nowait)
            if gone is not None:
                gone.cancel()


class UserControl(ControlChannel):
    """Serves the control socket of a User Agent; `state` has the paths of its agreements."""

    def __init__(self, agent: UserAgent, path: Path, state: StateFolder) -> None:
        super().__init__(agent, path)
        self._agent = agent
        self._state = state

    async def answer(self, request: Request, reader: asyncio.StreamReader, who: str) -> AsyncIterator[Event]:
        domain = str(self._agent.jid.domain)
        steps = answering.answered(request, self._agent.party, self._ids.new, domain, self._files, self._whole)
        async for event in self._held(steps, reader if request == EVERYTHING else None):
            yield event

    def _whole(self, outcome: RequestOutcome) -> RequestOutcome:
        journal = self._agent.host.ports.journal
        written = journal.records_of(outcome.request_id) if journal is not None else ()
        ends = [each.outcome for each in written if isinstance(each, RequestConcluded)]
        return replace(ends[-1], until=outcome.until) if ends else outcome  # a bought quote has two ends

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
        if not isinstance(request, ev.KeeperAsked):
            return
        domain, word = str(self._commanded.jid.domain), request.word
        async for done in self._held(answering.commanded(request, self._ids.new, domain)):
            match done:
                case DepositMade() if isinstance(word, DepositOrder):
                    account = full_name(word.account, domain)
                    what = f"{credits_text(done.amount)} credits to {account} ({done.deposit_id})"
                    self._log(who, "deposit", account, what)
                case ChangePosted() if isinstance(word, RefundOrder):
                    what = f"{credits_text(done.refund)} credits refunded: {word.reason}"
                    self._log(who, "refund", word.agreement_id, what)
            yield done

    def _log(self, who: str, verb: str, name: str, what: str) -> None:
        add_line(self._state, self._commanded.now(), who, verb, name, what)
