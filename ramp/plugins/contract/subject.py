"""The plug-in under test: opened anew for each rule, every answer checked, all holds released at the end.

The functions at the end are for the rules: each returns the answer, or raises an error that names its fault.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from ramp.errors import PluginError
from ramp.model.instant import DAY, HOUR, MINUTE, Duration, Instant, from_iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot
from ramp.plugins import answers
from ramp.plugins.interface import PluginSettings, ResourcePlugin

OpenPlugin = Callable[[PluginSettings], ResourcePlugin]
Answer = TypeVar("Answer")
P = ParamSpec("P")

LEAD: Final[Duration] = MINUTE
"""How far ahead of the first call the tried windows begin."""

RUN: Final[Duration] = HOUR
SEARCHED: Final[Duration] = 7 * DAY
"""How far ahead free cores are searched."""

PARTS: Final = 4
"""Number of simultaneous reservations of some rules."""

NUMBER: Final = 3
"""The unit's number in all requests: not 1, to detect plug-ins that ignore it."""

PRICE: Final = 70
"""Asking price in credits per core hour; plug-ins ignore it."""


class ContractBroken(AssertionError):
    """A plug-in breaks its interface; the message names the call, the answer and the expected answer."""


class NotChecked(Exception):
    """A rule cannot be tried on this plug-in as it is; the message says why."""


class AskedPlugin:
    """A wrapper that checks every answer of a plug-in and remembers what to release.

    Args:
        slowest: longest time of each call so far, in seconds; kept up to date.
    """

    def __init__(self, plugin: ResourcePlugin, folder: Path, slowest: dict[str, float]) -> None:
        self.plugin = plugin
        self.folder = folder
        self.held: set[str] = set()
        self._slowest = slowest

    @property
    def source(self) -> str:
        return self.plugin.source

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        return self._ask(self.plugin.quote, partial(answers.quote_problem, unit), unit, now)

    def hold(self, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant) -> Reservation | Refusal:
        self.held.add(key)
        return self._ask(self.plugin.hold, partial(answers.reservation_problem, key, slot), key, unit, slot, until, now)

    def confirm(self, key: str, now: Instant) -> Reservation | Refusal:
        return _without_start(self._ask(self.plugin.confirm, partial(answers.firm_problem, key), key, now))

    def release(self, key: str, now: Instant) -> None:
        self._ask(self.plugin.release, _no_problem, key, now)

    def reservation(self, key: str, now: Instant) -> Reservation | None:
        return _without_start(self._ask(self.plugin.reservation, partial(answers.found_problem, key), key, now))

    def reservations(self, now: Instant) -> tuple[Reservation, ...]:
        return tuple(map(_without_start, self._ask(self.plugin.reservations, answers.reservations_problem, now)))

    def snapshot(self, now: Instant, horizon: Duration) -> dict[str, Any]:
        """See `ResourcePlugin.snapshot`; returned after a round trip through JSON."""
        shown = self._ask(self.plugin.snapshot, _no_problem, now, horizon)
        try:
            text = json.dumps(shown, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ContractBroken(f"snapshot: not plain JSON: {error}") from error
        read: dict[str, Any] = json.loads(text)
        return read

    def forget(self, keys: Sequence[str], now: Instant) -> None:
        """See `ResourcePlugin.forget`; `NotChecked` if the plug-in cannot forget."""
        if type(self.plugin).forget is ResourcePlugin.forget:
            raise NotChecked("it has no `forget`; one whose memory grows with every slot needs it")
        self._ask(self.plugin.forget, _no_problem, keys, now)

    def demand_resizable(self) -> None:
        """See that the plug-in can change sizes; `NotChecked` if it cannot."""
        if type(self.plugin).resize is ResourcePlugin.resize:
            raise NotChecked("it has no `resize`; buyers cannot change the size of its reservations")

    def resize(self, key: str, step: int, cores: int, until: Instant, now: Instant) -> Reservation | Refusal:
        problem = partial(answers.resized_problem, key, cores, until)
        return _without_start(self._ask(self.plugin.resize, problem, key, step, cores, until, now))

    def _ask(
        self, call: Callable[P, Answer], problem_of: Callable[[Any], str], *arguments: P.args, **named: P.kwargs
    ) -> Answer:
        name = call.__name__
        began = time.perf_counter()
        try:
            answer = call(*arguments, **named)
        except PluginError:
            raise
        except Exception as error:
            raise ContractBroken(
                f"{name}: raised {type(error).__name__}: {error}; a plug-in raises nothing but PluginError"
            ) from error
        finally:
            self._slowest[name] = max(self._slowest.get(name, 0.0), time.perf_counter() - began)
        problem = problem_of(answer)
        if problem:
            raise ContractBroken(f"{name}: {problem}")
        return answer


def _no_problem(_answer: object) -> str:
    return ""


def _without_start(answer: Answer) -> Answer:
    """Drop the start of a queued job from an answer, because the rules do not check it."""
    return replace(answer, started_at=None) if isinstance(answer, Reservation) else answer


class Subject:
    """A plug-in under the contract, with a time at which it has free cores.

    Args:
        open_plugin: the plug-in's entry point.
        settings: the machine and its options; `state_dir` is ignored, each rule has a folder of its own.
        now: the instant of the first calls. In the week after it an hour with some free cores is searched.
        folder: an empty folder for the plug-in's durable state.
    """

    def __init__(self, open_plugin: OpenPlugin, settings: PluginSettings, now: Instant, folder: Path) -> None:
        self.settings = settings
        self.now = now
        self.slowest: dict[str, float] = {}
        self._open = open_plugin
        self._folder = folder
        self._numbers = count(1)
        self._window: tuple[Instant, int] | None = None

    @property
    def cores(self) -> int:
        return self.settings.cores

    def new_folder(self) -> Path:
        """Return a new empty folder for state."""
        folder = self._folder / f"state-{next(self._numbers)}"
        folder.mkdir(parents=True)
        return folder

    def open_raw(self, **changes: Any) -> ResourcePlugin:
        """Open the plug-in with changed settings, in a new folder unless one is among them."""
        return self._open(replace(self.settings, **{"state_dir": self.new_folder(), **changes}))

    @contextmanager
    def machine(self, folder: Path | None = None) -> Iterator[AskedPlugin]:
        """Open the plug-in with the state in `folder`, or without; release all its holds at the end."""
        folder = folder or self.new_folder()
        asked = AskedPlugin(self.open_raw(state_dir=folder), folder, self.slowest)
        try:
            yield asked
        finally:
            for key in sorted(asked.held):
                asked.plugin.release(key, self.now)

    def key(self, name: str) -> str:
        """Return a key that no earlier rule has used, because the machine may remember it."""
        return f"contract-{self._folder.name}-{next(self._numbers)}-{name}"

    @property
    def start(self) -> Instant:
        """Return the begin of the tried windows."""
        return self._found()[0]

    @property
    def portion(self) -> int:
        """Return a number of cores of which `PARTS` times as many are free together from `start` on for `RUN`."""
        return self._found()[1]

    def unit(self, cores: int | None = None, *, after: Duration = 0, slack: Duration = 0) -> RequestUnit:
        """Request cores (by default a portion) from `after` the start of the tried window on, with slack at the end."""
        start = self.start + after
        wanted = TotalCores(self.portion if cores is None else cores)
        return RequestUnit(NUMBER, PRICE, start + RUN + slack, wanted, not_before=start, wall_time=RUN)

    def _found(self) -> tuple[Instant, int]:
        if self._window is None:
            with self.machine() as machine:
                self._window = self._search(machine)
        return self._window

    def _search(self, machine: AskedPlugin) -> tuple[Instant, int]:
        first = self.now + LEAD
        portion = max(1, self.cores // (2 * PARTS))
        while portion:
            wanted = TotalCores(min(PARTS * portion, self.cores))
            unit = RequestUnit(NUMBER, PRICE, first + SEARCHED, wanted, not_before=first, wall_time=RUN)
            slot = machine.quote(unit, self.now)
            if isinstance(slot, Slot):
                return slot.start, portion
            portion //= 2
        raise NotChecked(
            f"{self.settings.resource} has no {min(PARTS, self.cores)} cores free for an hour in the next week; free "
            "some, or open the plug-in with options that leave some"
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the contract.

    Attributes:
        name: the rule in a few words with hyphens.
        sentence: the required behaviour.
        trial: gets a subject and its newly opened machine; raises `ContractBroken` if it violates the rule,
            `NotChecked` if it cannot be tried.
    """

    name: str
    sentence: str
    trial: Callable[[Subject, AskedPlugin], None]

    def check(self, subject: Subject) -> None:
        """Try the rule.

        Raises:
            ContractBroken: if the plug-in does not keep it.
            NotChecked: if it cannot be tried on this plug-in as it is.
        """
        try:
            with subject.machine() as machine:
                self.trial(subject, machine)
        except PluginError as error:
            raise ContractBroken(f"raised {error}; this call has an answer") from error


def demand(right: bool, wrong: str) -> None:
    """Raise an error with a sentence unless a condition holds; `ContractBroken` with that sentence."""
    if not right:
        raise ContractBroken(wrong)


def slot_for(machine: AskedPlugin, unit: RequestUnit, now: Instant) -> Slot:
    """Return the slot quoted for a unit that fits."""
    answer = machine.quote(unit, now)
    if not isinstance(answer, Slot):
        raise ContractBroken(f"quote: {answer.code} ({answer.detail}) for {unit.cores.total} cores that are free")
    return answer


def held(machine: AskedPlugin, key: str, unit: RequestUnit, until: Instant, now: Instant) -> Reservation:
    """Return a hold of the slot quoted for a unit that fits."""
    return reserved("hold", machine.hold(key, unit, slot_for(machine, unit, now), until, now))


def reserved(what: str, answer: Reservation | Refusal) -> Reservation:
    """Require that a call answered a reservation."""
    if isinstance(answer, Refusal):
        raise ContractBroken(f"{what}: got refusal {answer.code} ({answer.detail}), expected the reservation")
    return answer


def refused(what: str, answer: object, *codes: RefusalCode) -> Refusal:
    """Require that a call answered a refusal with one of the codes."""
    right = " or ".join(codes)
    if not isinstance(answer, Refusal):
        raise ContractBroken(f"{what}: got {answer!r:.200}, expected a refusal with {right}")
    demand(answer.code in codes, f"{what}: got refusal {answer.code} ({answer.detail}), expected {right}")
    return answer


def same(what: str, answer: object, before: object) -> None:
    """Require that two answers are equal."""
    demand(answer == before, f"{what}: got {answer!r:.300}, expected {before!r:.300} as before")


def instant_of(what: str, text: str) -> Instant:
    """Return the instant that a refusal names as the nearest valid one."""
    try:
        return from_iso(text)
    except ValueError as error:
        raise ContractBroken(f"{what}: nearest: got {text!r}, expected an instant in ISO 8601") from error


def fill(machine: AskedPlugin, subject: Subject, until: Instant, now: Instant) -> list[str]:
    """Hold all free cores in the tried window, the largest pieces first; return the keys.

    Raises:
        ContractBroken: if more is held than the machine has.
    """
    keys: list[str] = []
    taken = 0
    cores = subject.cores
    while cores:
        unit = subject.unit(cores)
        slot = machine.quote(unit, now)
        if isinstance(slot, Refusal):
            cores = cores // 2 if cores > 1 else 0
            continue
        keys.append(subject.key("all"))
        taken += reserved("hold", machine.hold(keys[-1], unit, slot, until, now)).slot.cores
        demand(taken <= subject.cores, f"hold: {taken} cores are set aside at once, the machine has {subject.cores}")
    if not machine.held:
        raise NotChecked("the cores that were free are not free any more")
    return keys
