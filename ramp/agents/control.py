"""What a User Agent's owner may ask of it over its control channel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from ramp.agents import wire
from ramp.agents.control_channel import ControlChannel, Verbs
from ramp.agents.roles import UserAgent
from ramp.model.acl import Message, Performative
from ramp.model.contents import Bid, CallForProposals
from ramp.model.instant import SECOND, from_iso
from ramp.model.request import RequestForQuotation
from ramp.protocol import events as ev
from ramp.protocol import progress as pr
from ramp.protocol.evaluator import BIDS_MAX
from ramp.rfql import codec
from ramp.rfql.request_for_quotation import parse_request
from ramp.runtime.record_json import to_plain
from ramp.runtime.state_folder import StateFolder

HORIZON_DEFAULT_S: Final = 86_400
"""How far ahead a machine's projected load is asked for, in seconds."""


class UserControl(ControlChannel):
    """Serves one User Agent's control socket.

    Args:
        agent: the agent.
        path: where the socket is.
        state: the swarm's state folder, for the paths of agreements.
    """

    def __init__(self, agent: UserAgent, path: Path, state: StateFolder) -> None:
        super().__init__(agent, path)
        self._agent = agent
        self._state = state

    def verbs(self) -> Verbs:
        """Everything that a user may ask of its agent."""
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
                "doubt": purchase.doubt,
                "units": len(purchase.request.units),
                "started_at": purchase.started_at,
                "outcome": None if purchase.outcome is None else to_plain(purchase.outcome),
            }
            for request_id, purchase in self._agent.party.purchases.items()
        ]
        yield {"event": "requests", "requests": requests}

    async def _agreements(self, _: Any, __: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        party = self._agent.party
        doubts = party.doubts()
        listed = [
            {
                "agreement": to_plain(agreement),
                "state": party.agreement_state(agreement_id),
                "doubt": doubts.get(agreement_id, ""),
                "file": self._agreement_file(agreement_id),
                "payment_file": self._payment_file(agreement_id),
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

    def _event(self, progress: pr.Progress) -> dict[str, Any]:
        event = super()._event(progress)
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

    def _payment_file(self, agreement_id: str) -> str | None:
        path = self._state.payment(str(self._agent.jid.user), agreement_id)
        return str(path) if path.exists() else None


def _request_of(progress: pr.Progress) -> str:
    if isinstance(progress, pr.RequestEnded):
        return progress.outcome.request_id
    if isinstance(
        progress,
        pr.CancellationEnded | pr.QueryAnswered | pr.KeeperOrdered | pr.GuestFailed | pr.RecordsMissing,
    ):
        return ""
    return progress.request_id
