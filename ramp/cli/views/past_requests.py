"""Requests and agreements of a user's archive, in the form of the control channel.

The archive is read from the journal's file, because the User Agent does not load it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from ramp.control.events import AgreementStanding, RequestStanding, by_request
from ramp.protocol import records as rc
from ramp.protocol.outcome import RequestOutcome
from ramp.protocol.rules.auction_rule import PAPER_RULE
from ramp.protocol.user.changing.history import History
from ramp.runtime.journal import Archive
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
        for outcome, units in self._archive.requests():
            charged, returned = money.get(outcome.request_id, (0, 0))
            rule = outcome.rule or PAPER_RULE
            standing = RequestStanding(outcome.request_id, outcome.status, "", units, outcome.started_at, outcome)
            standing = replace(standing, archived=True, rule=rule, name=outcome.name)
            found.append(replace(standing, charged=charged, returned=returned))
        return tuple(found)

    def outcome(self, request_id: str) -> RequestOutcome | None:
        """Return the result of a request with its rounds; None if it is not archived."""
        records = self._archive.of_reference(request_id)
        return next((each.outcome for each in reversed(records) if isinstance(each, rc.RequestConcluded)), None)

    def agreements(self) -> tuple[AgreementStanding, ...]:
        """List all agreements: `past`, `cancelled`, `lost`, or `void` with its order."""
        bought = {unit.agreement_id for outcome, _ in self._archive.requests() for unit in outcome.units}
        drawn_up = [agreement for asked in self._archive.of_kind(rc.FundsAsked) for agreement in asked.agreements]
        history = History({agreement.agreement_id: agreement for agreement in drawn_up})
        for proposed in self._archive.of_kind(rc.ChangeProposed):
            history.propose(proposed.signed.change)
        for changed in self._archive.of_kind(rc.ChangeConcluded):
            history.note(changed.outcome)
        moved = {heard.word.agreement_id: heard.word for heard in self._archive.of_kind(rc.MoveHeard)}  # the last
        found = []
        for agreement in drawn_up:
            agreement_id = agreement.agreement_id
            back = history.ended.get(agreement_id)
            state = PAST if agreement_id in bought else "void"
            if back is not None:
                state = "lost" if back.cause else "cancelled"
            found.append(
                AgreementStanding(
                    agreement,
                    state,
                    file=_existing(self._state.agreement(self._user, agreement_id)),
                    payment_file=_existing(self._state.payment(self._user, agreement_id)),
                    archived=True,
                    moved=moved.get(agreement_id),
                    amendments=history.posted(agreement_id),
                    refunded=0 if back is None else back.refund,
                    cause="" if back is None else back.cause,
                )
            )
        return tuple(found)


def _existing(path: Path) -> str | None:
    return str(path) if path.exists() else None
