"""The control channel of a User Agent: its owner's commands over a Unix socket, as JSON lines.

The socket's folder is readable by the owner only, which is all the authority there is: whoever can open it spends the
owner's money. Every line a client sends is one request with a `verb`; the answers are lines with an `event`. A request
that takes a while streams its progress and ends with one of `ramp.runtime.control_client.LAST_EVENTS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ramp.agents import wire
from ramp.agents.roles import UserAgent
from ramp.errors import RampError
from ramp.model.acl import Message, Performative
from ramp.model.contents import AccountQueryRefused, Bid, CallForProposals
from ramp.model.instant import SECOND, from_iso
from ramp.model.request import RequestForQuotation
from ramp.protocol import events as ev
from ramp.protocol import progress as pr
from ramp.protocol.evaluator import BIDS_MAX
from ramp.rfql import codec
from ramp.rfql.request_for_quotation import parse_request
from ramp.runtime.identifiers import RandomIds
from ramp.runtime.record_json import to_plain
from ramp.runtime.state_folder import StateFolder

LINE_BYTES_MAX: Final = 1_000_000
"""Longest request line; a document is at most a tenth of it."""

HORIZON_DEFAULT_S: Final = 86_400
"""How far ahead a machine's projected load is asked for, in seconds."""

EVENT_NAMES: Final[dict[type, str]] = {
    pr.RoundOpened: "round_opened",
    pr.RoundClosed: "round_closed",
    pr.ApprovalAsked: "approval_asked",
    pr.UnitAdvanced: "unit_advanced",
    pr.RequestEnded: "request_ended",
    pr.CancellationEnded: "cancellation_ended",
    pr.QueryAnswered: "query_answered",
}

_log = logging.getLogger(__name__)


class ControlServer:
    """Serves one User Agent's control socket.

    Args:
        agent: the agent.
        path: where the socket is.
        state: the swarm's state folder, for the paths of agreements.
    """

    def __init__(self, agent: UserAgent, path: Path, state: StateFolder) -> None:
        self._agent = agent
        self._path = path
        self._state = state
        self._ids = RandomIds()
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Open the socket; a stale one of an earlier life is replaced."""
        self._path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, str(self._path), limit=LINE_BYTES_MAX)
        self._path.chmod(0o600)

    async def stop(self) -> None:
        """Close the socket and all connections."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._clients):
            task.cancel()
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            while line := await reader.readline():
                await self._answer(line, reader, writer)
        except (ConnectionError, ValueError, asyncio.CancelledError) as error:
            _log.info("control connection ended: %r", error)
        finally:
            self._clients.discard(task)
            with contextlib.suppress(ConnectionError, RuntimeError):
                writer.close()

    async def _answer(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = json.loads(line)
            verb = request["verb"]
            handler = self._verbs()[verb]
        except (ValueError, KeyError, TypeError):
            await _write(writer, {"event": "error", "exit_code": 2, "reason": "not a known control request"})
            return
        try:
            async for answer in handler(request, reader):
                await _write(writer, answer)
        except RampError as error:
            await _write(writer, {"event": "error", "exit_code": error.exit_code, "reason": str(error)})
        except (KeyError, TypeError, ValueError) as error:
            await _write(writer, {"event": "error", "exit_code": 2, "reason": f"{verb}: {error!r}"})

    def _verbs(self) -> Mapping[str, Callable[[Any, asyncio.StreamReader], AsyncIterator[dict[str, Any]]]]:
        return {
            "submit": self._submit,
            "watch": self._watch,
            "withdraw": self._withdraw,
            "requests": self._requests,
            "agreements": self._agreements,
            "cancel": self._cancel,
            "account": self._account,
            "machine": self._machine,
            "resources": self._resources,
        }

    # -- requests ------------------------------------------------------------------------------------------------

    async def _submit(self, request: Any, reader: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        document = parse_request(request["document"], request.get("source"))
        given = request.get("options", {})
        options = ev.AuctionOptions(
            rounds=int(given.get("rounds", 3)),
            round_time=round(float(given.get("round_time_s", 15)) * SECOND),
            preference=ev.Preference(given.get("prefer", "cheapest")),
            approval=ev.Approval(given.get("approve", "auto")),
            quote_only=bool(given.get("quote_only", False)),
        )
        request_id = request.get("request_id") or self._ids.new("request")
        command = ev.RequestSubmitted(request_id, document, options)
        self._check_size(request_id, document)
        yield {"event": "submitted", "request_id": request_id, "warnings": list(document.warnings)}
        async for answer in self._follow_request(request_id, command, reader):
            yield answer

    def _check_size(self, request_id: str, document: RequestForQuotation) -> None:
        """Refuse a request whose call for proposals could not be sent, before anything is.

        Raises:
            DocumentTooLarge: if it is over the size limit of a message, the other resources' bids included.
        """
        name = self._agent.host.name
        bids = tuple(Bid(unit.number, name, unit.cpu_hour_cost) for unit in document.units)
        most = bids * (BIDS_MAX // len(bids) + 1)
        call = CallForProposals(request_id, 1, document, most[:BIDS_MAX])
        encoded = codec.encode(Message(Performative.CFP, name, name, request_id, call))
        wire.encode_message(
            to=name,
            sender=name,
            body=encoded.body,
            metadata=encoded.metadata,
            thread=encoded.thread,
            stanza_id="size",
            stanza_max_bytes=self._agent.settings.stanza_max_bytes,
            compress_from_bytes=self._agent.settings.compress_from_bytes,
        )

    async def _watch(self, request: Any, reader: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        request_id = request["request_id"]
        purchase = self._agent.party.purchases.get(request_id)
        if purchase is None:
            yield {"event": "error", "exit_code": 2, "reason": f"there is no request {request_id}"}
        elif purchase.outcome is not None:
            yield self._event(pr.RequestEnded(purchase.outcome))
        else:
            async for answer in self._follow_request(request_id, None, reader):
                yield answer

    async def _follow_request(
        self, request_id: str, command: ev.Command | None, reader: asyncio.StreamReader
    ) -> AsyncIterator[dict[str, Any]]:
        async with self._progress(lambda progress: _request_of(progress) == request_id) as queue:
            if command is not None:
                await self._agent.command(command)
            while True:
                progress = await queue.get()
                yield self._event(progress)
                if isinstance(progress, pr.RequestEnded):
                    return
                if isinstance(progress, pr.ApprovalAsked):
                    line = await reader.readline()
                    approved = bool(line) and json.loads(line).get("approved") is True
                    await self._agent.command(ev.OffersApproved(request_id, approved))

    async def _withdraw(self, request: Any, _: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        request_id = request["request_id"]
        if request_id not in self._agent.party.purchases:
            yield {"event": "error", "exit_code": 2, "reason": f"there is no request {request_id}"}
            return
        await self._agent.command(ev.RequestWithdrawn(request_id))
        yield {"event": "done"}

    async def _requests(self, _: Any, __: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        requests = [
            {
                "request_id": request_id,
                "stage": purchase.stage,
                "units": len(purchase.request.units),
                "started_at": purchase.started_at,
                "outcome": None if purchase.outcome is None else to_plain(purchase.outcome),
            }
            for request_id, purchase in self._agent.party.purchases.items()
        ]
        yield {"event": "requests", "requests": requests}

    async def _agreements(self, _: Any, __: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        party = self._agent.party
        listed = [
            {
                "agreement": to_plain(agreement),
                "state": party.agreement_state(agreement_id),
                "file": self._agreement_file(agreement_id),
            }
            for agreement_id, agreement in party.agreements.items()
        ]
        yield {"event": "agreements", "agreements": listed}

    async def _cancel(self, request: Any, _: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        agreement_id = request["agreement_id"]
        command = ev.AgreementCancelled(agreement_id, request.get("reason") or "cancelled by the user")

        def wanted(progress: pr.Progress) -> bool:
            return isinstance(progress, pr.CancellationEnded) and progress.outcome.agreement_id == agreement_id

        async with self._progress(wanted) as queue:
            await self._agent.command(command)
            yield self._event(await queue.get())

    # -- queries -------------------------------------------------------------------------------------------------

    async def _account(self, request: Any, _: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        since, until = (None if request.get(key) is None else from_iso(request[key]) for key in ("since", "until"))
        query_id = self._ids.new("nonce")
        async for answer in self._ask(query_id, ev.AccountAsked(query_id, since, until)):
            yield answer

    async def _machine(self, request: Any, _: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        query_id = self._ids.new("query")
        domain = str(self._agent.jid.domain)
        resource = request["resource"] if "@" in request["resource"] else f"{request['resource']}@{domain}"
        horizon = round(float(request.get("horizon_s", HORIZON_DEFAULT_S)) * SECOND)
        async for answer in self._ask(query_id, ev.MachineAsked(query_id, resource, horizon)):
            yield answer

    async def _resources(self, _: Any, __: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        query_id = self._ids.new("query")
        async for answer in self._ask(query_id, ev.ResourcesAsked(query_id)):
            yield answer

    async def _ask(self, query_id: str, command: ev.Command) -> AsyncIterator[dict[str, Any]]:
        def wanted(progress: pr.Progress) -> bool:
            return isinstance(progress, pr.QueryAnswered) and progress.query_id == query_id

        async with self._progress(wanted) as queue:
            await self._agent.command(command)
            progress = await queue.get()
        assert isinstance(progress, pr.QueryAnswered)
        if progress.answer is None:
            yield {"event": "error", "exit_code": 1, "reason": "no answer came; is the agent up? `ramp ps` tells"}
        elif isinstance(progress.answer, AccountQueryRefused):
            refused = progress.answer
            yield {"event": "error", "exit_code": 1, "reason": f"the bank refuses: {refused.detail or refused.code}"}
        else:
            yield self._event(progress)

    # -- common --------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _progress(self, wanted: Callable[[pr.Progress], bool]) -> AsyncIterator[asyncio.Queue[pr.Progress]]:
        queue: asyncio.Queue[pr.Progress] = asyncio.Queue()

        def watcher(progress: pr.Progress) -> None:
            if wanted(progress):
                queue.put_nowait(progress)

        self._agent.watchers.add(watcher)
        try:
            yield queue
        finally:
            self._agent.watchers.discard(watcher)

    def _event(self, progress: pr.Progress) -> dict[str, Any]:
        event = {"event": EVENT_NAMES[type(progress)], **to_plain(progress)}
        if isinstance(progress, pr.RequestEnded):
            event["agreements"] = {
                unit.agreement_id: self._agreement_file(unit.agreement_id)
                for unit in progress.outcome.units
                if unit.agreement_id
            }
        return event

    def _agreement_file(self, agreement_id: str) -> str | None:
        path = self._state.agreement(str(self._agent.jid.user), agreement_id)
        return str(path) if path.exists() else None


def _request_of(progress: pr.Progress) -> str:
    if isinstance(progress, pr.RequestEnded):
        return progress.outcome.request_id
    if isinstance(progress, pr.CancellationEnded | pr.QueryAnswered):
        return ""
    return progress.request_id


async def _write(writer: asyncio.StreamWriter, answer: dict[str, Any]) -> None:
    writer.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
    await writer.drain()
