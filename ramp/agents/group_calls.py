"""Calls of the supervisor to a process of agents: lines of JSON on its standard input.

The answer is an event `answered` of the process (`ramp.agents.group`) with the call's number.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final

from ramp.agents.party_agent import PartyAgent
from ramp.agents.roles import BankingAgent
from ramp.errors import TransportError
from ramp.model.instant import Instant
from ramp.model.money import credits_text
from ramp.protocol.resource.party import ResourceParty
from ramp.protocol.resource.slots.kept_participants import FINAL
from ramp.protocol.transition_tables import ParticipantState
from ramp.protocol.user.party import UserParty

ANSWERED = "answered"

CALL_LIMIT_S: Final = 20.0
"""Timeout of a call in seconds; an agent takes up to 5 s to end."""


class Act(StrEnum):
    """Kind of call.

    STOP: the agent ends for good. RESTART: it ends and starts again with the current configuration. UPDATE: it applies
    changes that need no restart: its certificate, prices of a resource, new accounts of the bank. STANDING: it reports
    its open obligations, or the bank the state of an account.
    """

    STOP = "stop"
    RESTART = "restart"
    UPDATE = "update"
    STANDING = "standing"


@dataclass(frozen=True, slots=True)
class GroupCall:
    """One question.

    Attributes:
        act: its kind.
        agent: local name of the agent.
        account: name of an account, for the bank.
        call: its number, set when it is asked.
    """

    act: Act
    agent: str
    account: str = ""
    call: int = 0

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


def read_call(line: bytes) -> GroupCall:
    """Decode a call; `ValueError` if the line is not a call."""
    try:
        plain = json.loads(line)
        return GroupCall(Act(plain["act"]), str(plain["agent"]), str(plain.get("account", "")), int(plain["call"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"invalid call: {error}") from error


class OpenCalls:
    """The supervisor's calls without an answer."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[str, asyncio.Future[dict[str, Any]]]] = {}
        self._asked = 0

    async def ask(self, process: str, lines: asyncio.StreamWriter, asked: GroupCall) -> dict[str, Any]:
        """Send a call to a process, through its standard input `lines`, and wait for the answer.

        Raises:
            TransportError: the process has ended.
            TimeoutError, OSError: the process does not answer or read.
        """
        self._asked += 1
        number, answer = self._asked, asyncio.get_running_loop().create_future()
        self._open[number] = process, answer
        try:
            lines.write(replace(asked, call=number).line())
            await lines.drain()
            event: dict[str, Any] = await asyncio.wait_for(answer, CALL_LIMIT_S)
            return event
        finally:
            del self._open[number]

    def answered(self, event: dict[str, Any]) -> None:
        _, waiting = self._open.get(event.get("call", 0), ("", None))
        if waiting is not None and not waiting.done():
            waiting.set_result(event)

    def ended(self, process: str, status: int) -> None:
        """Fail the open calls of a process that has ended."""
        for asked, waiting in self._open.values():
            if asked == process and not waiting.done():
                waiting.set_exception(TransportError(f"the process {process} has ended with status {status}"))


def standing_of(agent: PartyAgent, account: str, now: Instant) -> tuple[list[str], list[str]]:
    """Return an agent's open obligations, or the bank's state of an account, as texts for people."""
    if isinstance(agent, BankingAgent):
        return _account(agent, account)
    party = agent.host.party
    if isinstance(party, UserParty):
        return _bought(party, now), []
    if isinstance(party, ResourceParty):
        kept = slots_kept(party, now)
        return _counted(kept, "slot sold or held that is not over", "slots sold or held that are not over"), []
    return [], []


def slots_kept(party: ResourceParty, now: Instant) -> int:
    """Return how many slots a resource holds or has sold that are not over."""
    parts = party.participants.values()
    sold = sum(each.state is ParticipantState.SOLD and each.size[1] > now for each in parts)
    return sold + sum(each.state not in FINAL for each in parts)


def _bought(party: UserParty, now: Instant) -> list[str]:
    states = {each: party.agreement_state(each) for each in party.agreements}
    going_on = sum(purchase.outcome is None for purchase in party.purchases.values())
    kept = sum(state == "active" and party.changes.history.state(each).until > now for each, state in states.items())
    between = sum(state in ("settling", "cancelling") for state in states.values())
    return [
        *_counted(going_on, "open request", "open requests"),
        *_counted(kept, "slot bought that is not over", "slots bought that are not over"),
        *_counted(between, "purchase or refund under way", "purchases and refunds under way"),
    ]


def _counted(number: int, one: str, many: str) -> list[str]:
    return [f"{number} {one if number == 1 else many}"] if number else []


def _account(bank: BankingAgent, account: str) -> tuple[list[str], list[str]]:
    books = bank.host.ports.ledger
    assert books is not None, "a bank has a ledger"
    for balance in books.ledger.balances():
        if balance.account.account_id == account:
            found = [f"{credits_text(balance.reserved)} credits set aside"] if balance.reserved else []
            found += [f"{credits_text(-balance.posted)} credits owed to the bank"] if balance.posted < 0 else []
            return found, [f"its account keeps {credits_text(balance.posted)} credits"] if balance.posted > 0 else []
    return [], []
