"""The plug-in `gridengine`: a cluster queue of a Grid Engine behind a Resource Agent."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Annotated, Any, Final

from ramp.batch.commands import CommandRunner, Runner, ask, check_installed, market_account, own_account
from ramp.batch.for_sale import ForSale
from ramp.batch.gridengine import questions
from ramp.batch.gridengine.questions import ask_of_some, limit_of
from ramp.batch.gridengine.system import GridEngine
from ramp.batch.inspecting import Comparing, Remark, reading
from ramp.batch.machine import SNAPSHOT_AGE_S, BatchMachine
from ramp.batch.node_lists import parts_of
from ramp.batch.reconciling import own_prefix
from ramp.batch.system import WantedReservation
from ramp.errors import ConfigurationError
from ramp.model.instant import SECOND, Duration, Instant, iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.slot import Slot
from ramp.options import Bounds, Wanted, read_options, takes
from ramp.plugins.interface import PluginSettings

_VERIFIED_MAX = 200
"""Number of verified slots to remember, more than a few seconds bring."""


class GridEngineMachine(BatchMachine):
    """A cluster queue behind a Resource Agent.

    Free cores are computed from a picture of the queue, as for any system. Grid Engine then verifies the reservation,
    because it also knows limits of hosts, quotas of resources and calendars. Both must agree, because it grants
    reservations on disabled queues. Its answers are kept as long as the picture.
    """

    system: GridEngine

    def __init__(self, system: GridEngine, *others: Any, **named: Any) -> None:
        super().__init__(system, *others, **named)
        self._verified = lru_cache(_VERIFIED_MAX)(self._verify)

    def begin(self, now: Instant) -> None:
        """Sweep reservations (see `BatchMachine.begin`), and usersets that a crash has left without a reservation.

        Raises:
            PluginError: the system cannot be asked now.
        """
        super().begin(now)
        kept = {each.name for each in self.book.live(now)} | {each.name for each in self.book.to_remove(now)}
        there = {each.name for each in self.system.reservations()}
        self.system.sweep_usersets(own_prefix(self.resource), kept | there)

    def _quoted(
        self, unit: RequestUnit, duration: Duration, earliest: Instant, latest: Instant, now: Instant
    ) -> Slot | Refusal:
        slot = super()._quoted(unit, duration, earliest, latest, now)
        if not isinstance(slot, Slot):
            return slot
        found = self._grantable(slot, now)
        if found < slot.cores and self.book.to_remove(now):  # expired reservations still take slots
            self.reconciler.sweep(now)
            self._verified.cache_clear()
            found = self._grantable(slot, now)
        if found >= slot.cores:
            return slot
        detail = f"Grid Engine itself would grant {found} of {slot.cores} slots from {iso(slot.start)} on"
        return Refusal(unit.number, RefusalCode.CORES_TAKEN, detail=detail)

    def _grantable(self, slot: Slot, now: Instant) -> int:
        return self._verified(self.picture(now).taken_at, slot.start, slot.end, slot.token)

    def _verify(self, _taken_at: Instant, start: Instant, end: Instant, token: str) -> int:
        start, end = start // SECOND * SECOND, -(-end // SECOND) * SECOND
        return self.system.verify(WantedReservation("", start, end, parts_of(token)))


RESERVERS: Final = "arusers"
"""The userset whose members may reserve."""

OFFSET_DEFAULT_S: Final = 60
"""Grid Engine's own DURATION_OFFSET: it kills jobs this long before the end of their reservation."""

OFFSET_MAX_S: Final = 1
"""Largest offset accepted: a buyer pays for the slot to its end."""

_OBJECT: Final = Wanted("a name of Grid Engine's", lambda text: re.fullmatch(r"[A-Za-z][\w.-]{0,63}", text) is not None)
_FORBIDDEN: Final = ("PATH", "HOME", "TZ", "LC_ALL")


@dataclass(frozen=True, slots=True)
class CellOptions:
    """Configuration of a cluster queue, and how Grid Engine's commands find it.

    Attributes:
        queue: the cluster queue.
        parallel_environment: in which reservations are made; each slot of it is a core.
        root: SGE_ROOT; empty for the value that the agent's environment or the commands have.
        cell: SGE_CELL.
        commands: folder of Grid Engine's commands; empty for those on the PATH. Debian's real ones are in
            /usr/lib/gridengine; those on its PATH are shell scripts around them, which take twice as long.
        environment: further variables for the commands, as SGE_QMASTER_PORT.
    """

    queue: Annotated[str, _OBJECT] = "all.q"
    parallel_environment: Annotated[str, _OBJECT] = "mpi"
    root: str = ""
    cell: Annotated[str, _OBJECT] = "default"
    commands: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GridEngineOptions(CellOptions):
    """Configuration of a cluster queue that is sold.

    Attributes:
        market_user: the account that holds belong to; empty for the agent's own, as which the commands run.
        snapshot_age_s: seconds for which one picture of the queue serves all buyers.
        for_sale: the part that is for sale, and when.
    """

    market_user: str = ""
    snapshot_age_s: Annotated[float, Bounds(0, 60)] = SNAPSHOT_AGE_S
    for_sale: ForSale = field(default_factory=ForSale)


@takes(GridEngineOptions)
def open_plugin(settings: PluginSettings) -> GridEngineMachine:
    """Open the cluster queue of the options (entry point `gridengine` of the group `ramp.resource_plugins`).

    Raises:
        ConfigurationError: an option is wrong, or Grid Engine's setup does not allow sales.
        PluginError: it cannot be asked now.
    """
    options = read_options(settings.options, GridEngineOptions, within=settings.resource)
    system = open_system(settings, options)
    machine = GridEngineMachine(
        system,
        settings,
        options.for_sale,
        snapshot_age_s=options.snapshot_age_s,
        conditions=partial(conditions, settings.resource, system),
    )
    machine.begin(time.time_ns() // 1000)
    return machine


def open_system(settings: PluginSettings, options: GridEngineOptions) -> GridEngine:
    """Open the cell of the options and check its setup, without changing it.

    Raises:
        ConfigurationError: an option is wrong, or Grid Engine's setup does not allow sales.
        PluginError: it cannot be asked now.
    """
    variables = environment_of(options, settings.resource)
    check_installed(("qstat", "qrstat", "qrsub", "qconf"), variables, "Grid Engine", settings.resource)
    run = CommandRunner(variables, questions.ORDER_S)
    system = GridEngine(
        run=run,
        queue=options.queue,
        environment=options.parallel_environment,
        market_user=market_account(options.market_user, settings.resource),
        default_duration=_checked(run, options, settings),
    )
    slots = sum(each.slots_total for each in ask(questions.QUEUES, run).instances if each.queue == options.queue)
    if slots < settings.cores:
        raise ConfigurationError(
            f"the queue {options.queue} has {slots} slots, fewer than the {settings.cores} cores of the resource",
            key=f"{settings.resource}.cores",
        )
    return system


def environment_of(options: CellOptions, resource: str) -> dict[str, str]:
    """Return the variables by which Grid Engine's commands find it.

    Raises:
        ConfigurationError: a variable is not for the configuration to set.
    """
    for name in options.environment:
        if name in _FORBIDDEN or not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ConfigurationError(
                f"the configuration cannot set {name!r}, only variables such as SGE_QMASTER_PORT",
                key=f"{resource}.environment",
            )
    root = options.root or os.environ.get("SGE_ROOT", "")
    given = {"SGE_ROOT": root, "PATH": options.commands}
    return {key: value for key, value in given.items() if value} | {"SGE_CELL": options.cell, **options.environment}


def _checked(run: Runner, options: GridEngineOptions, settings: PluginSettings) -> Duration | None:
    """Check that Grid Engine's setup allows sales; return the assumed length of a job without a limit, None for ever.

    Raises:
        ConfigurationError: naming the setting to change, and how.
        BatchSystemError: it does not answer.
    """
    queue, environment = options.queue, options.parallel_environment
    slots = ask_of_some(questions.settings("-sp", environment), run)
    if "pe_name" not in slots:
        known = "`qconf -spl` lists them"
        key = f"{settings.resource}.parallel_environment"
        raise ConfigurationError(f"Grid Engine has no parallel environment {environment!r}; {known}", key=key)
    if slots.get("slots", "").isdigit() and int(slots["slots"]) < settings.cores:
        raise ConfigurationError(
            f"the parallel environment {environment} has {slots['slots']} slots, fewer than the {settings.cores} cores "
            f"of {settings.resource}; `qconf -mp {environment}` changes them",
            key=f"{settings.resource}.cores",
        )
    served = ask_of_some(questions.settings("-sq", queue), run)
    if "qname" not in served:
        key = f"{settings.resource}.queue"
        raise ConfigurationError(f"Grid Engine has no queue {queue!r}; `qconf -sql` lists the queues", key=key)
    if environment not in re.split(r"[\s,\[\]=]+", served.get("pe_list", "")):
        raise ConfigurationError(
            f"the queue {queue} serves no parallel environment {environment} (pe_list {served.get('pe_list')!r}); "
            f"`qconf -aattr queue pe_list {environment} {queue}` adds it",
            key=f"{settings.resource}.parallel_environment",
        )
    scheduler = ask(questions.SCHEDULER, run)
    offset = re.search(r"DURATION_OFFSET=(\d+)", scheduler.get("params", ""), re.IGNORECASE)
    if (int(offset[1]) if offset else OFFSET_DEFAULT_S) > OFFSET_MAX_S:
        raise ConfigurationError(
            f"jobs would be killed {offset[1] if offset else OFFSET_DEFAULT_S} s before their slot's end; set `params "
            "DURATION_OFFSET=1` in the scheduler's configuration (`qconf -msconf`)",
            key=settings.resource,
        )
    default = limit_of(scheduler.get("default_duration", ""))
    return None if default is None else default // SECOND * SECOND


def conditions(resource: str, system: GridEngine, now: Instant) -> Sequence[Remark]:
    """Check that the agent's account may reserve and change usersets; a remark that is a finding forbids sales."""
    del now
    run, account = system.run, own_account()
    managers, operators = (ask_of_some(question, run) for question in (questions.MANAGERS, questions.OPERATORS))
    reservers = ask_of_some(questions.usersets((RESERVERS,)), run).get(RESERVERS, ())
    missing = []
    if account not in {*managers, *operators}:
        missing.append(f"`qconf -ao {account}` (lets it change who may use a reservation)")
    if account not in {*managers, *reservers}:
        missing.append(f"`qconf -au {account} {RESERVERS}` (lets it reserve)")
    if missing:
        do = f"as a manager, run {' and '.join(missing)}"
        return [Remark("privilege", resource, f"the account {account} may not sell slots", do)]
    return [Remark("privilege", resource, f"the account {account} may reserve in {system.environment}")]


def inspect(settings: PluginSettings, now: Instant) -> tuple[Sequence[Remark], Callable[[], Comparing]]:
    """See `ramp.batch.inspecting.Inspection`; also checks queue, parallel environment and limits."""
    system = open_system(settings, read_options(settings.options, GridEngineOptions, within=settings.resource))
    return conditions(settings.resource, system, now), partial(reading, settings.resource, system)
