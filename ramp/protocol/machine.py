"""Base of all protocol machines: a state that follows its transition table, and a history for error messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from enum import StrEnum
from typing import Generic, TypeVar

from ramp.errors import ProtocolError
from ramp.model.instant import Duration, Instant
from ramp.protocol.effects import Effect
from ramp.protocol.timing import Pace, Retry, earliest, moved
from ramp.protocol.transition_tables import Transition

STORY_LENGTH = 30
"""Transitions kept for error messages; enough for an auction of ten rounds with its commitment."""

State = TypeVar("State", bound=StrEnum)


class StateMachine(Generic[State]):
    """Base of the protocol machines.

    Attributes:
        conversation_id: named in errors.
        deadline: when to call `tick` next, or None.
    """

    deadline: Instant | None

    def __init__(self, conversation_id: str, table: frozenset[Transition], initial: State) -> None:
        self.conversation_id = conversation_id
        self.state: State = initial
        self.deadline = None
        self._table = table
        self._story: deque[str] = deque(maxlen=STORY_LENGTH)

    def _enter(self, next_state: State, stimulus: str) -> None:
        """Move along an edge of the transition table.

        Raises:
            ProtocolError: if the table has no such edge.
        """
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


class PatientMachine(StateMachine[State], ABC):
    """A machine that repeats one question in each state, until it is answered or its limit is over."""

    def __init__(self, conversation_id: str, table: frozenset[Transition], initial: State, pace: Pace) -> None:
        super().__init__(conversation_id, table, initial)
        self._pace = pace
        self._retry = Retry(pace)
        self._limit: Instant | None = None

    @abstractmethod
    def _say(self) -> list[Effect]:
        """Return the question of the present state."""

    def clock_set(self, by: Duration) -> None:
        self._retry.clock_set(by)
        self._limit = moved(self._limit, by)
        self._arm()

    def _ask(self, limit: Duration | None, now: Instant) -> list[Effect]:
        """Ask for the first time and wait at least this long for an answer; None waits without limit."""
        self._limit = None if limit is None else now + self._pace.patience(limit)
        self._retry.begin(now)
        self._arm()
        return self._say()

    def _is_out_of_patience(self, now: Instant) -> bool:
        return self._limit is not None and now >= self._limit

    def _ask_again(self, now: Instant) -> list[Effect]:
        if not self._retry.is_due(now):
            return []
        self._retry.again(now)
        self._arm()
        return self._say()

    def _is_answered(self, now: Instant) -> None:
        self._retry.answered(now)
        self._limit = None
        self._arm()

    def _arm(self) -> None:
        self.deadline = earliest(self._limit, self._retry.due)
