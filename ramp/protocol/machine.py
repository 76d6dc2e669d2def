"""Base of all protocol machines: a state that follows its transition table, and a history for error messages."""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import Generic, TypeVar

from ramp.errors import ProtocolError
from ramp.protocol.transition_tables import Transition

STORY_LENGTH = 30
"""Transitions kept for error messages; enough for an auction of ten rounds with its commitment."""

State = TypeVar("State", bound=StrEnum)


class StateMachine(Generic[State]):
    """Base of the protocol machines.

    Attributes:
        conversation_id: named in errors.
    """

    def __init__(self, conversation_id: str, table: frozenset[Transition], initial: State) -> None:
        self.conversation_id = conversation_id
        self.state: State = initial
        self._table = table
        self._story: deque[str] = deque(maxlen=STORY_LENGTH)

    def _enter(self, next_state: State, stimulus: str) -> None:
        """Move along an edge of the transition table; `ProtocolError` if the table has no such edge."""
        if Transition(self.state, stimulus, next_state) not in self._table:
            raise ProtocolError(
                f"{type(self).__name__} cannot go from {self.state} to {next_state} on {stimulus}",
                conversation_id=self.conversation_id,
                story=tuple(self._story),
            )
        self._story.append(f"{self.state} -{stimulus}-> {next_state}")
        self.state = next_state

    def _resume(self, state: State) -> None:
        """Begin in a state that is on record, after a restart.

        Raises:
            ProtocolError: if the machine has begun already, or its table never leads to the state.
        """
        if self._story or not any(move.next_state is state for move in self._table):
            raise ProtocolError(
                f"{type(self).__name__} cannot resume as {state} from {self.state}",
                conversation_id=self.conversation_id,
                story=tuple(self._story),
            )
        self._story.append(f"resumed as {state}")
        self.state = state
