"""A guest in a separate process: the host never waits for it, and a guest that fails is killed and restarted.

Questions wait in order, and the guest gets one at a time. Every question gets an answer, even if the process fails.
Offers (`quote`, `hold`, `price`) are refused at once if the guest cannot answer soon: while it pauses after a failure,
opens, or takes long for another question, or if too many questions wait. Questions about promises wait until the guest
runs again; after a timeout their result counts as unknown.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Final

from ramp.agents.guests.messages import Asked, FromGuest, NonsenseSaid, NotOpened, Opened, Opening, Told
from ramp.agents.guests.process import MARK, GuestGone, GuestProcess, environment_of, how_ended
from ramp.errors import ConfigurationError, PluginError, StateDamaged
from ramp.model.instant import MINUTE, SECOND, Duration, Instant
from ramp.plugins.interface import SOURCES, PluginSettings
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.progress import Progress
from ramp.runtime.configuration.values import (
    PLUGIN_GROUP,
    PRICING_GROUP,
    GuestLimits,
    ResourceConfig,
    entry_point,
    has_own_process,
    open_plugin,
    plugin_settings,
    pricing_strategy,
)
from ramp.runtime.guests.health import GuestHealth
from ramp.runtime.guests.questions import (
    OUT_OF_MEMORY,
    ROW_OF,
    GuardedGuest,
    Question,
    Row,
    answer_problem,
    raised,
    without_answer,
)
from ramp.runtime.host import Guest
from ramp.runtime.sqlite_file import FROM_BACKUP
from ramp.runtime.storage_errors import reason_of
from ramp.text import one_line


def _moved(question: Question, by: Duration) -> Question:
    """Move the times of a question; the guest could refuse a past window without asking the machine."""
    if not isinstance(question, fx.QuoteSlots):
        return question
    later = (
        replace(each, deadline=each.deadline + by, not_before=None if each.not_before is None else each.not_before + by)
        for each in question.units
    )
    return replace(question, units=tuple(later))


TRIAL: Final[Duration] = SECOND
"""Timeout of a question that tests whether a failed guest works again."""

OPEN_SOON: Final[Duration] = 15 * SECOND
"""Maximum time that a launch waits for a guest to open; after that the guest opens in the background."""

STEADY: Final[Duration] = MINUTE
"""Run time after which a restarted process counts as working."""


@dataclass(frozen=True, slots=True)
class GuestPorts:
    """Limits and callbacks of a resource's guests.

    Attributes:
        owner: path of the market's state and name of the resource, which no other running guest has.
        limits: limits of guests in separate processes.
        now: the agent's clock.
        deliver: called with later answers.
        say: called with the kind of a guest and each line that it prints.
        watch: called with progress of the resource.
    """

    owner: str
    limits: GuestLimits
    now: Callable[[], Instant]
    deliver: Callable[[ev.Answer], None]
    say: Callable[[str, str], None]
    watch: Callable[[Progress], None]


@dataclass(slots=True, eq=False)
class _Waiting:
    """A question without an answer yet."""

    question: Question
    row: Row
    timer: asyncio.TimerHandle | None = None
    answered: bool = False

    @property
    def call(self) -> str:
        return self.row.call


class IsolatedGuest:
    """A guest and its process; its health decides the pauses after failures."""

    def __init__(
        self, opening: Opening, environment: Mapping[str, str], health: GuestHealth, ports: GuestPorts
    ) -> None:
        self._opening = opening
        self._environment = environment
        self._health = health
        self._limits = ports.limits
        self._now = ports.now
        self._deliver = ports.deliver
        self._say = partial(ports.say, health.guest)
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self._first: asyncio.Future[None] | None = None
        self._at_work: tuple[str, float] | None = None  # with its start by the loop's monotonic clock
        self._asked: _Waiting | None = None
        self._process: GuestProcess | None = None
        self._ending: asyncio.Future[None] | None = None
        self._number = 0
        self._probes: dict[str, asyncio.TimerHandle] = {}

    # -- life ----------------------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int | None:
        """Process id of the guest's warden, or None."""
        return self._process.pid if self._process is not None else None

    def begin(self) -> None:
        """Start opening the guest, and keep it running, in the background."""
        self._first = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live())

    async def opened(self) -> None:
        """Wait until the guest is open or has failed to open, or until a timeout.

        Raises:
            ConfigurationError: the guest reports invalid options.
            PluginError: the guest reports that it can never be opened.
        """
        assert self._first is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._first), min(OPEN_SOON, self._limits.open) / SECOND)
        if not self._first.done():
            self._first.set_result(None)

    async def stop(self) -> None:
        """End the process; waiting questions get no answer."""
        for timer in self._probes.values():
            timer.cancel()
        if self._life is not None:
            self._life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._life
        if self._ending is not None:
            await self._ending
        for waiting in (*self._waiting, *([self._asked] if self._asked is not None else [])):
            self._settle(waiting)
        self._waiting.clear()

    async def _live(self) -> None:
        pause = 0.0
        while True:
            await asyncio.sleep(pause)
            failed = ""
            try:
                self._process = await GuestProcess.start(self._environment, self._limits.memory_mb, self._say)
                if await self._open(self._process):
                    failed = await self._serve(self._process)
                else:
                    failed = "open"
            except OSError as error:
                failed = "open"
                self._not_open(f"cannot start its process: {reason_of(error)}")
            except Exception as error:  # a bug here: reported and retried, without effect on other guests
                failed = "process"
                self._health.failed(failed, raised(error), self._now())
            finally:
                self._at_work = None
                process, self._process = self._process, None
                if process is not None:
                    self._ending = asyncio.ensure_future(process.kill())
                    await asyncio.shield(self._ending)
            pause = self._health.restart_pause(failed, self._now()) / SECOND

    async def _open(self, process: GuestProcess) -> bool:
        self._at_work = "opening", asyncio.get_running_loop().time()
        soon, limit = self._limits.quote / SECOND, self._limits.open / SECOND
        watch = asyncio.get_running_loop().call_later(
            soon, partial(self._not_open, f"it is not open after {soon:g} s", is_final=False)
        )
        try:
            said = await asyncio.wait_for(process.ask(self._opening), limit)
        except TimeoutError:
            self._not_open(f"it does not open within {limit:g} s")
        except (GuestGone, NonsenseSaid) as error:
            self._not_open(f"it does not open: {error}")
        else:
            return self._is_open(said)
        finally:
            watch.cancel()
            self._at_work = None
        return False

    def _is_open(self, said: FromGuest) -> bool:
        first = self._first if self._first is not None and not self._first.done() else None
        if isinstance(said, Opened) and (said.source in SOURCES or not said.source):
            self._health.answered("open")
            if said.source:
                self._deliver(ev.MachineOpened(said.source, said.tended))
            if first is not None:
                first.set_result(None)
            return True
        reason = one_line(said.reason) if isinstance(said, NotOpened) else "unexpected answer"
        if first is not None and isinstance(said, NotOpened) and said.blame != "nobody":
            is_option = said.blame == "configuration"
            first.set_exception(ConfigurationError(reason) if is_option else PluginError(self._opening.name, reason))
        self._not_open(f"it does not open: {reason}")
        return False

    def _not_open(self, reason: str, *, is_final: bool = True) -> None:
        """Report that the guest is not open; if final, end the wait for it."""
        self._health.failed("open", reason, self._now())
        if is_final and self._first is not None and not self._first.done():
            self._first.set_result(None)

    # -- questions -----------------------------------------------------------------------------------------------------

    def ask(self, question: Question, now: Instant) -> ev.Answer | None:
        """Accept a question; return the answer, or None if it comes later."""
        row = ROW_OF[type(question)]
        reason = self._unfit(row, now)
        if reason:
            return without_answer(question, reason, asked=False)
        waiting = _Waiting(question, row)
        limit = self._limits.of(row.limit)
        if row.impatient:
            on_trial = self._health.is_on_trial(row.call)
            limit = min(limit, TRIAL if on_trial else max(self._limits.quote, self._limits.price))
        waiting.timer = asyncio.get_running_loop().call_later(limit / SECOND, self._too_late, waiting, limit)
        self._waiting.append(waiting)
        self._wake.set()
        return None

    def _probe_later(self, waiting: _Waiting) -> None:
        """Repeat a failed question after the pause, to find out without a buyer whether the guest works again.

        Only questions that change nothing are repeated: the last quote, price or snapshot of the machine. Each further
        failure doubles the pause. Only the next hold can prove that holds work again. The party itself repeats
        questions about promises until their answers.
        """
        if not waiting.row.can_be_repeated:
            return
        now, call = self._now(), waiting.call
        if call in self._probes:
            self._probes[call].cancel()
        pause = self._health.restart_pause(call, now) / SECOND
        self._probes[call] = asyncio.get_running_loop().call_later(pause, self._probe, waiting, now)

    def _probe(self, failed: _Waiting, at: Instant) -> None:
        if self._health.is_failing(failed.call):
            question = _moved(failed.question, self._now() - at)
            self._waiting.append(_Waiting(question, failed.row, answered=True))
            self._wake.set()

    def _unfit(self, row: Row, now: Instant) -> str:
        if len(self._waiting) >= self._limits.waiting_max:
            return f"{row.call}: too many questions wait ({len(self._waiting)})"
        if not row.impatient:
            return ""
        reason = self._health.resting(row.call, now)
        if not reason and self._at_work is not None:
            what, since = self._at_work
            lasted = asyncio.get_running_loop().time() - since
            if lasted >= self._limits.quote / SECOND:
                return f"{row.call}: busy with {what} for {lasted:.0f} s"
        return reason

    def _too_late(self, waiting: _Waiting, limit: Duration) -> None:
        """Answer a question after its timeout, unless it has started and changes the machine: `_put` limits that."""
        queued = waiting in self._waiting
        if queued:
            self._waiting.remove(waiting)
        elif not waiting.row.can_be_repeated:
            return
        reason = f"{waiting.call}: no answer within {limit / SECOND:g} s"
        self._answer(waiting, without_answer(waiting.question, reason, asked=not queued))

    async def _serve(self, process: GuestProcess) -> str:
        """Ask questions until one fails or the process ends; return the failed call."""
        steady = asyncio.get_running_loop().call_later(STEADY / SECOND, self._health.answered, "process")
        try:
            while True:
                await self._next_or_end(process)
                if process.ended.done():
                    reason = how_ended(process.ended.result())
                    self._health.failed("process", reason, self._now())
                    return "process"
                waiting = self._asked = self._waiting.popleft()
                problem = await self._put(process, waiting)
                if problem:
                    sentence = f"{waiting.call}: {one_line(problem)}"
                    self._health.failed(waiting.call, sentence, self._now())
                    self._probe_later(waiting)
                    self._answer(waiting, without_answer(waiting.question, sentence, asked=True))
                    return waiting.call
                self._health.answered("process")
        finally:
            steady.cancel()

    async def _next_or_end(self, process: GuestProcess) -> None:
        while not self._waiting and not process.ended.done():
            self._wake.clear()
            woken = asyncio.create_task(self._wake.wait())
            try:
                await asyncio.wait({woken, process.ended}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                woken.cancel()

    async def _put(self, process: GuestProcess, waiting: _Waiting) -> str:
        """Ask the guest one question and deliver the answer; return the problem, empty if none."""
        self._number += 1
        self._at_work = waiting.call, asyncio.get_running_loop().time()
        limit = self._limits.of(waiting.row.limit) / SECOND
        try:
            asked = Asked(self._number, self._now(), waiting.question)
            said = await asyncio.wait_for(process.ask(asked), limit)
            if not isinstance(said, Told) or said.number != self._number:
                return "answer to another question"
            problem = answer_problem(waiting.question, said.answer)
        except TimeoutError:
            return f"no answer within {limit:g} s"
        except (GuestGone, NonsenseSaid) as error:
            return str(error)
        except Exception as error:  # raised by the check of the answer
            return raised(error)
        finally:
            self._at_work = None
        if problem:
            return problem
        failures = [finding.reason for finding in said.findings if finding.reason]
        if any(OUT_OF_MEMORY in reason for reason in failures):
            return OUT_OF_MEMORY  # a restart frees its memory
        for reason in failures:
            self._health.failed(waiting.call, one_line(reason), self._now())
        if failures:
            self._probe_later(waiting)
        else:
            self._health.answered(waiting.call)
        self._answer(waiting, said.answer)
        return ""

    # -- answers -------------------------------------------------------------------------------------------------------

    def _answer(self, waiting: _Waiting, answer: ev.Answer) -> None:
        if not waiting.answered:
            self._settle(waiting)
            self._deliver(answer)

    def _settle(self, waiting: _Waiting) -> None:
        waiting.answered = True
        if waiting.timer is not None:
            waiting.timer.cancel()


# -- opening ---------------------------------------------------------------------------------------------------------

UNKNOWN_YET = "live"
"""Source of a machine whose plug-in is not open yet; the resource makes no offers before."""


def open_machine(
    resource: ResourceConfig, started_at: Instant, reservations: Path, ports: GuestPorts
) -> tuple[Guest[fx.AskMachine], ev.MachineOpened]:
    """Open a resource's plug-in, or prepare its process, and return it with what is known of the machine.

    Raises:
        ConfigurationError: the plug-in does not exist, or one in this process refuses its options.
        PluginError: a plug-in in this process cannot be opened now.
        StateDamaged: a plug-in in this process can never be opened.
    """
    health = GuestHealth("plug-in", ports.watch)
    entry = entry_point(PLUGIN_GROUP, resource.plugin)
    if has_own_process(entry, resource.isolation):
        settings = plugin_settings(resource, started_at, reservations.absolute())
        return _isolated(entry, settings, health, ports), ev.MachineOpened(UNKNOWN_YET)
    try:
        plugin = open_plugin(resource, started_at, reservations)
    except PluginError as error:
        if error.transient:
            raise
        raise StateDamaged(reservations, error.reason, FROM_BACKUP) from error
    return GuardedGuest(plugin, health), ev.MachineOpened(plugin.source, plugin.tended)


def open_pricing(resource: ResourceConfig, ports: GuestPorts) -> Guest[fx.PriceSlots]:
    """Open a resource's price strategy, or prepare its process; `ConfigurationError` if the name is unknown."""
    health = GuestHealth("price strategy", ports.watch)
    entry = entry_point(PRICING_GROUP, resource.pricing)
    if has_own_process(entry, resource.isolation):
        return _isolated(entry, None, health, ports)
    return GuardedGuest(pricing_strategy(resource.pricing), health)


def _isolated(
    entry: EntryPoint, settings: PluginSettings | None, health: GuestHealth, ports: GuestPorts
) -> IsolatedGuest:
    return IsolatedGuest(
        Opening(entry.group, entry.name, entry.value, settings),
        {**environment_of(os.environ, ports.limits.environment), MARK: f"{ports.owner} {health.guest}"},
        health,
        ports,
    )
