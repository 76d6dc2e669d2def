"""Requests and agreements of a user's archive, in the form of the control channel.

The archive is read from the journal's file, because the User Agent does not load it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from ramp.control.events import AgreementStanding, RequestStanding, by_request
from ramp.model.agreement import Agreement, ContractChange
from ramp.model.contents import SlotMoved
from ramp.protocol.outcome import CancellationOutcome, RequestOutcome
from ramp.protocol.rules.auction_rule import PAPER_RULE
from ramp.runtime.journal import Archive
from ramp.runtime.model_json import model_converter
from ramp.runtime.state_folder import StateFolder

PAST: Final = "past"
"""State of an agreement whose slot has ended long ago."""


class PastRequests:
    """The archive of one user."""

    def __init__(self, state: StateFolder, user: str) -> None:
        self._state = state
        self._user = user
        self._archive = Archive(state.journal(user))

    def __len__(self) -> int:
        return self._archive.request_count()

    def listed(self) -> tuple[RequestStanding, ...]:
        """List all requests, oldest first, without rounds; raises `StateDamaged` for a damaged archive."""
        found = []
        money = by_request(self.agreements())
        for request in self._archive.requests():
            outcome = _outcome({"rounds": [], "others": [], **request["outcome"]})
            found.append(
                RequestStanding(
                    request["request_id"],
                    outcome.status,
                    "",
                    request["units"],
                    outcome.started_at,
                    outcome,
                    archived=True,
                    rule=outcome.rule or PAPER_RULE,
                    charged=money.get(request["request_id"], (0, 0))[0],
                    returned=money.get(request["request_id"], (0, 0))[1],
                    name=outcome.name,
                )
            )
        return tuple(found)

    def outcome(self, request_id: str) -> RequestOutcome | None:
        """Return the result of a request with its rounds; None if it is not archived."""
        records = self._archive.of_reference(request_id)
        found = [record["outcome"] for record in records if record["type"] == "RequestConcluded"]
        return _outcome(found[-1]) if found else None

    def agreements(self) -> tuple[AgreementStanding, ...]:
        """List all agreements: `past`, `cancelled`, `lost`, or `void` with its order."""
        bought = {
            unit["agreement_id"]
            for concluded in self._archive.of_kind("RequestConcluded")
            for unit in concluded["outcome"]["units"]
        }
        given_back = {
            outcome.agreement_id: outcome
            for concluded in self._archive.of_kind("CancellationConcluded")
            if (outcome := _converter().structure(concluded["outcome"], CancellationOutcome)).done
        }
        amended = self._amended()
        moved = {each["word"]["agreement_id"]: each["word"] for each in self._archive.of_kind("MoveHeard")}  # the last
        found = []
        for asked in self._archive.of_kind("FundsAsked"):
            for plain in asked["agreements"]:
                agreement = _converter().structure(plain, Agreement)
                agreement_id = agreement.agreement_id
                back = given_back.get(agreement_id)
                state = PAST if agreement_id in bought else "void"
                if back is not None:
                    state = "lost" if back.cause else "cancelled"
                word = moved.get(agreement_id)
                found.append(
                    AgreementStanding(
                        agreement,
                        state,
                        file=_existing(self._state.agreement(self._user, agreement_id)),
                        payment_file=_existing(self._state.payment(self._user, agreement_id)),
                        archived=True,
                        moved=_converter().structure(word, SlotMoved) if word else None,
                        amendments=amended.get(agreement_id, ()),
                        refunded=0 if back is None else back.refund,
                        cause="" if back is None else back.cause,
                    )
                )
        return tuple(found)

    def _amended(self) -> dict[str, tuple[ContractChange, ...]]:
        posted = {
            (concluded["outcome"]["agreement_id"], concluded["outcome"]["number"])
            for concluded in self._archive.of_kind("ChangeConcluded")
            if concluded["outcome"]["done"]
        }
        found: dict[str, tuple[ContractChange, ...]] = {}
        for proposed in self._archive.of_kind("ChangeProposed"):
            amendment = _converter().structure(proposed["amendment"], ContractChange)
            key = amendment.agreement_id
            if (key, amendment.number) in posted and amendment not in found.get(key, ()):
                found[key] = (*found.get(key, ()), amendment)
        return found


_converter = cache(model_converter)


def _outcome(plain: Mapping[str, Any]) -> RequestOutcome:
    return _converter().structure(plain, RequestOutcome)


def _existing(path: Path) -> str | None:
    return str(path) if path.exists() else None
