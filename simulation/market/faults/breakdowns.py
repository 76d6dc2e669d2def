"""When parties break down: crashes after single effects, disks that are full, single writes that fail.

A crash may come after any effect, which is the same as before the next one, and after the last of a reaction. An aim
makes it likely after one kind of effect: a record, a message, a call to ledger or machine. A failed write is the
operating system's error out of the journal or the ledger, with the record written or not.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ramp.ledger.interface import Ledger
from ramp.model.agreement import Signed
from ramp.model.instant import Duration, Instant
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.records import Record
from ramp.runtime.journal import MemoryJournal
from ramp.runtime.ledger.bank_ledger import BankLedger
from simulation.market.network import FaultWindow
from simulation.market.random_streams import stream

if TYPE_CHECKING:
    from simulation.market.faults.plan import FaultPlan

READING = ("LookUpAgreement", "CarryOutAccountQuery", "CarryOutOverviewQuery")
"""Questions to the ledger that write nothing, as `kind_of` names them."""


class Blow(StrEnum):
    """What happens after an effect at which a plan aims."""

    CRASH = "crash"
    WRITE_FAILS = "write fails"
    CUT_SELF = "cut self"
    CUT_BANK = "cut bank"
    CUT_DIRECTORY = "cut directory"


@dataclass(frozen=True, slots=True)
class Aim:
    """Trouble at one kind of effect.

    Attributes:
        at: the kind, as `kind_of` names it.
        probability: that the trouble occurs.
        blow: the trouble.
        lasting: how long a line stays cut; of a crash, the mean time until the restart.
        most: highest number in a run.
    """

    at: str
    probability: float
    blow: Blow
    lasting: Duration
    most: int = 3


def kind_of(effect: fx.Effect) -> str:
    """Return the name by which an aim knows an effect: of the record, of the message's content, or of the effect."""
    match effect:
        case fx.Persist(record):
            return type(record).__name__
        case fx.Send(message):
            content = message.content
            return f"Send{type(content.body if isinstance(content, Signed) else content).__name__}"
        case fx.CarryOut(message):
            return f"CarryOut{type(message.content).__name__}"
    return type(effect).__name__


class Breakdowns:
    """Decides what breaks in one run.

    Args:
        plan: its faults, up to its healing.
        seed: of what is drawn.
        start: the true time at which the run begins.
        away: who is cut off by the blows that do not cut off the party they strike.
    """

    def __init__(self, plan: FaultPlan, seed: int, start: Instant, away: Mapping[Blow, str]) -> None:
        self._plan = plan
        self._random = stream(seed, "breakdowns")
        self._crash_random = stream(seed, "crash")
        self._start = start
        self._away = away
        self._struck: Counter[Aim] = Counter()

    def at(self, name: str, effect: fx.Effect, now: Instant) -> tuple[Duration | None, FaultWindow | None]:
        """Decide what happens when a party is about to carry out an effect.

        Returns:
            After what pause the party restarts if it crashes after the effect, and whose line is cut.
        """
        if now - self._start >= self._plan.heal_after:
            return None, None
        crash, cut = None, None
        if (aim := self._aimed(effect, writing=False)) is not None:
            if aim.blow is Blow.CRASH:
                crash = self.pause(aim.lasting)
            else:
                cut = FaultWindow(self._away.get(aim.blow, name), now, now + aim.lasting)
        if self._plan.crash and self._crash_random.random() < self._plan.crash:
            crash = self.pause()
        return crash, cut

    def pause(self, mean: Duration | None = None) -> Duration:
        """Draw how long a crashed party stays down; without a mean, of the plan's."""
        return 1 + int(self._crash_random.expovariate(1 / (self._plan.restart_mean if mean is None else mean)))

    def check_write(self, name: str, effect: fx.Effect, now: Instant) -> bool:
        """Decide a party's write; return whether the write, which succeeds, is to be reported as failed.

        Raises:
            OSError: if its disk is full.
        """
        passed = now - self._start
        if passed >= self._plan.heal_after:
            return False
        full = any(disk.strikes((name,), passed) for disk in self._plan.disks)
        if not full and self._aimed(effect, writing=True) is None:
            return False
        if full or self._random.random() < 0.7:
            raise no_space(name)
        return True

    def _aimed(self, effect: fx.Effect, *, writing: bool) -> Aim | None:
        """Return the aim that strikes; `writing`: whether the write itself asks."""
        kind = kind_of(effect) if self._plan.aims else ""
        for aim in self._plan.aims:
            is_meant = aim.at == kind and (aim.blow is Blow.WRITE_FAILS) is writing
            if is_meant and self._struck[aim] < aim.most and self._random.random() < aim.probability:
                self._struck[aim] += 1
                return aim
        return None


def no_space(name: str) -> OSError:
    """Return what the operating system says when a disk is full."""
    return OSError(errno.ENOSPC, "No space left on device", name)


Check = Callable[[fx.Effect], bool]
"""Is asked before a write: raises where it fails, and says whether it only seems to fail."""


class WatchedJournal(MemoryJournal):
    """A journal whose writes may fail; `check` runs before every write, `written` receives every record written."""

    def __init__(self, name: str, check: Check, written: Callable[[Record], None]) -> None:
        super().__init__()
        self._name = name
        self._check = check
        self._written = written

    def append(self, record: Record) -> None:
        """Add a record.

        Raises:
            OSError: if the write fails, or is reported as failed.
        """
        reported = self._check(fx.Persist(record))
        super().append(record)
        self._written(record)
        if reported:
            raise no_space(self._name)

    def archive(self, references: Sequence[str]) -> None:
        """Move records to the archive.

        Raises:
            OSError: if the write fails, or is reported as failed.
        """
        reported = self._check(fx.Archive(tuple(references)))
        super().archive(references)
        if reported:
            raise no_space(self._name)


class WatchedLedger(BankLedger):
    """The bank's ledger, whose writes may fail; each is one transaction. `check` runs before every write."""

    def __init__(self, ledger: Ledger, name: str, check: Check) -> None:
        super().__init__(ledger)
        self._name = name
        self._check = check

    def answer(self, effect: fx.AskLedger, now: Instant) -> ev.LedgerAnswer:
        """Carry one effect out.

        Raises:
            OSError: if the write fails, or is reported as failed.
        """
        reported = kind_of(effect) not in READING and self._check(effect)
        done = super().answer(effect, now)
        if reported:
            raise no_space(self._name)
        return done
