"""What all protocol machines share: a state that moves only along its table, and the story of how it got there."""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import Generic, TypeVar

from ramp.errors import LocalProtocolError
from ramp.model.instant import Instant
from ramp.protocol.tables import Transition

STORY_LENGTH = 30
"""Events remembered for error messages; enough for a whole auction of ten rounds with its commitment."""

State = TypeVar("State", bound=StrEnum)


class StateMachine(Generic[State]):
    """Base of the protocol machines.

    Attributes:
        conversation_id: what errors name.
        state: the present state.
        deadline: when `tick` wants to be called, or None.
    """

    deadline: Instant | None

    def __init__(self, conversation_id: str, table: frozenset[Transition], initial: State) -> None:
        self.conversation_id = conversation_id
        self.state: State = initial
        self.deadline = None
        self._table = table
        self._story: deque[str] = deque(maxlen=STORY_LENGTH)

    def _enter(self, next_state: State, stimulus: str) -> None:
        """Move along an edge of the table.

        Raises:
            LocalProtocolError: if the table has no such edge.
        """
        if Transition(self.state, stimulus, next_state) not in self._table:
            raise LocalProtocolError(
                f"{type(self).__name__} cannot go from {self.state} to {next_state} on {stimulus}",
                conversation_id=self.conversation_id,
                story=tuple(self._story),
            )
        self._story.append(f"{self.state} -{stimulus}-> {next_state}")
        self.state = next_state
