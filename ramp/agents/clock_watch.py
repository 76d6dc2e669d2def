"""An agent that compares its clock and, at its start, its journal with the bank's.

It warns its owner of a wrong clock. It ends if its journal was restored from an old copy: it would neither know what it
has bought or sold since, nor keep those promises.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Final

from ramp.agents.party_agent import PartyAgent
from ramp.errors import StateDamaged
from ramp.model.contents import AccountStatement
from ramp.model.instant import Instant
from ramp.protocol import events as ev
from ramp.protocol.clock_comparison import offset_text
from ramp.protocol.progress import ClockCompared, Progress, QueryAnswered
from ramp.protocol.questions import unknown_agreements
from ramp.runtime.identifiers import RandomIds
from ramp.runtime.journal import Journal

SELDOM_S: Final = 60.0
"""Pause between two comparisons while the clock is right, in seconds."""

OFTEN_S: Final = 5.0
"""Pause while the clock is wrong or unknown, in seconds. It doubles without an answer, up to `SELDOM_S`: frequent
questions of a thousand agents delay the answers, and an answer after the next question is ignored."""

NEWER_COPY: Final = (
    "restore a newer copy of it while the market is down, or let the keeper refund these agreements (`ramp bank "
    "refund`) and start the agent again (`ramp restart`)"
)

SHOWN_MAX: Final = 5
"""Maximum number of agreements that an error names."""

_log = logging.getLogger(__name__)


class ComparingAgent(PartyAgent):
    """A user or resource; others refuse its messages if its clock differs much from the bank's.

    Attributes:
        compared: the last comparison, or None.
        told: called with each comparison.
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.compared: ClockCompared | None = None
        self.told: Callable[[ClockCompared], None] = lambda _: None
        self._fresh = False  # whether `compared` is later than the last change of the clock
        self._answered = True  # whether the last question was answered
        self._ids = RandomIds()
        self._at_once = asyncio.Event()
        self._since: Instant = 0
        self._statement = ""  # the open question for payments since `_since`, which the journal may lack
        self._payments_known = False
        self._comparing: asyncio.Task[None] | None = None
        super().__init__(*args, **keywords)

    async def setup(self) -> None:
        self._since = self._journal.newest()
        await super().setup()
        self._comparing = asyncio.create_task(self._compare())

    async def stop(self) -> None:
        if self._comparing is not None:
            self._comparing.cancel()
        await super().stop()

    def on_clock_set(self) -> None:
        super().on_clock_set()
        self._fresh = False
        self._at_once.set()

    def take_comparison(self, compared: ClockCompared) -> bool:
        """Store a comparison, log when the clock becomes wrong or right, and return whether that happened."""
        was_wrong = self.compared is not None and self.compared.wrong
        self.compared, self._fresh, self._answered = compared, True, True
        self.told(compared)
        if compared.wrong and not was_wrong:
            _log.warning("%s: %s", self.jid, offset_text(compared))
        elif was_wrong and not compared.wrong:
            _log.warning("%s: this computer's clock agrees with the bank's again", self.jid)
        return compared.wrong != was_wrong

    @property
    def _journal(self) -> Journal:
        journal = self.host.ports.journal
        assert journal is not None, f"{self.jid} has no journal"
        return journal

    def watch(self, progress: Progress) -> None:
        if isinstance(progress, ClockCompared) and not self.take_comparison(progress):
            return
        if isinstance(progress, QueryAnswered) and progress.query_id == self._statement:
            self._statement = ""
            if isinstance(progress.answer, AccountStatement):
                self._check_payments(progress.answer)
        super().watch(progress)

    def _check_payments(self, statement: AccountStatement) -> None:
        """End this agent if the journal lacks an agreement that the bank has paid: it was restored from an old copy."""
        self._payments_known = True
        unknown = unknown_agreements(statement, self._journal.mentions)
        if unknown:
            shown = ", ".join(unknown[:SHOWN_MAX]) + (", ..." if len(unknown) > SHOWN_MAX else "")
            older = f"the journal is older than the bank's records; paid agreements missing: {len(unknown)} ({shown})"
            self.fail(StateDamaged(getattr(self._journal, "path", str(self.jid)), older, NEWER_COPY))

    async def _compare(self) -> None:
        often_s = OFTEN_S
        try:
            while True:
                if not (self._payments_known or self._statement):
                    self._statement = self._ids.new("statement")
                    await self.command(ev.AccountAsked(self._statement, self._since, None))
                self._at_once.clear()
                self._answered = False
                await self.command(ev.ClockAsked(self._ids.new("clock")))
                right = self._fresh and self.compared is not None and not self.compared.wrong
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(SELDOM_S if right else often_s):
                        await self._at_once.wait()
                often_s = next_pause_s(often_s, answered=self._answered or self._at_once.is_set())
        except Exception as error:
            self.on_behaviour_failed("clock", error)


def next_pause_s(pause_s: float, *, answered: bool) -> float:
    """Return the next pause in seconds while the clock is wrong or unknown, after an answered question or none."""
    return OFTEN_S if answered else min(2 * pause_s, SELDOM_S)
