"""What a buyer's changes have come to: the state of each slot, and the agreements that have ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ramp.model.agreement import Agreement, ContractChange, change_key
from ramp.model.instant import Instant
from ramp.model.sizes.amended import SlotState, after, first_state
from ramp.protocol.outcome import ChangeOutcome
from ramp.protocol.records import ChangeConcluded, ChangeProposed, Record


class History:
    """The changes of one user's contracts, as far as they are decided.

    Attributes:
        ended: outcomes of agreements that have ended with a refund; with the cause if the seller gave the slot back.
    """

    def __init__(self, agreements: Mapping[str, Agreement]) -> None:
        self.ended: dict[str, ChangeOutcome] = {}
        self._agreements = agreements
        self._refused: set[str] = set()
        self._proposed: dict[str, dict[int, ContractChange]] = {}
        self._posted: dict[str, list[ContractChange]] = {}
        self._states: dict[str, tuple[int, SlotState]] = {}  # with the number of changes it includes

    def replay(self, records: Sequence[Record]) -> dict[str, ChangeProposed]:
        """Replay a journal; return the open changes by key."""
        waiting: dict[str, ChangeProposed] = {}
        for record in records:
            match record:
                case ChangeProposed(signed):
                    self.propose(signed.change)
                    waiting[signed.change.key] = record
                case ChangeConcluded(outcome):
                    waiting.pop(change_key(outcome.agreement_id, outcome.number), None)
                    self.note(outcome)
        return {key: each for key, each in waiting.items() if each.signed.body.agreement_id in self._agreements}

    def propose(self, body: ContractChange) -> None:
        """Remember a proposed change of size; the end of an agreement counts once it is posted."""
        if not body.is_terminal:
            self._proposed.setdefault(body.agreement_id, {})[body.number] = body

    def note(self, outcome: ChangeOutcome) -> None:
        """Remember how a change ended."""
        agreement_id = outcome.agreement_id
        if outcome.ends and outcome.done:
            self.ended[agreement_id] = outcome
        elif outcome.ends:
            self._refused.add(agreement_id)
        elif outcome.done:
            body, posted = self._proposed[agreement_id][outcome.number], self._posted.setdefault(agreement_id, [])
            if body not in posted:
                posted.append(body)

    def forget(self, agreement_id: str) -> None:
        """Forget an archived agreement."""
        for kept in (self.ended, self._proposed, self._posted, self._states):
            kept.pop(agreement_id, None)
        self._refused.discard(agreement_id)

    def was_refused(self, agreement_id: str) -> bool:
        """Return whether the bank has refused to end an agreement."""
        return agreement_id in self._refused

    def proposal(self, agreement_id: str, number: int) -> ContractChange | None:
        return self._proposed.get(agreement_id, {}).get(number)

    def proposed(self, agreement_id: str) -> tuple[ContractChange, ...]:
        return tuple(self._proposed.get(agreement_id, {}).values())

    def last_number(self, agreement_id: str) -> int:
        """Return the number of the last proposal about an agreement, or 0."""
        return max(self._proposed.get(agreement_id, {0: None}))

    def posted(self, agreement_id: str) -> tuple[ContractChange, ...]:
        """Return the posted changes of an agreement's size, in order."""
        return tuple(self._posted.get(agreement_id, ()))

    def new_end(self, agreement_id: str) -> Instant:
        """Return the end of a slot that changes have set, or 0 without changes."""
        posted = self._posted.get(agreement_id)
        return posted[-1].until if posted else 0

    def state(self, agreement_id: str) -> SlotState:
        """Return the present state of a slot."""
        posted = self._posted.get(agreement_id, [])
        done, state = self._states.get(agreement_id) or (0, first_state(self._agreements[agreement_id]))
        for body in posted[done:]:
            state = after(state, body)
        self._states[agreement_id] = len(posted), state
        return state
