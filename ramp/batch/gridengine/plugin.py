"""The plug-in `gridengine`: a cluster queue of a Grid Engine behind a Resource Agent."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Final

from ramp.batch.commands import CommandRunner, Runner, ask
from ramp.batch.for_sale import ForSale
from ramp.batch.gridengine import questions
from ramp.batch.gridengine.machine import GridEngineMachine
from ramp.batch.gridengine.markup import limit_of
from ramp.batch.gridengine.questions import Programs, ask_of_some, programs_in
from ramp.batch.gridengine.system import NAME, GridEngine
from ramp.batch.inspecting import Remark
from ramp.batch.machine import SNAPSHOT_AGE_S
from ramp.errors import BatchSystemError, ConfigurationError, PluginError
from ramp.model.instant import SECOND, Duration, Instant
from ramp.options import Bounds, Wanted, read_options, takes
from ramp.plugins.interface import PluginSettings

RESERVERS: Final = "arusers"
"""The userset whose members may reserve."""

OFFSET_DEFAULT_S: Final = 60
"""Grid Engine's own DURATION_OFFSET: it kills jobs this long before the end of their reservation."""

OFFSET_MAX_S: Final = 1
"""Largest offset accepted: a buyer pays for the slot to its end."""

_OBJECT: Final = Wanted("a name of Grid Engine's", lambda text: re.fullmatch(r"[A-Za-z][\w.-]{0,63}", text) is not None)
_FORBIDDEN: Final = ("PATH", "HOME", "TZ", "LC_ALL")


@dataclass(frozen=True, slots=True)
class GridEngineOptions:
    """Configuration of a cluster queue that is sold.

    Attributes:
        queue: the cluster queue.
        parallel_environment: in which reservations are made; each slot of it is a core.
        root: SGE_ROOT; empty for the value that the agent's environment or the commands have.
        cell: SGE_CELL.
        commands: folder of Grid Engine's commands; empty for those on the PATH. Debian's real ones are in
            /usr/lib/gridengine; those on its PATH are shell scripts around them, which take twice as long.
        environment: further variables for the commands, as SGE_QMASTER_PORT.
        market_user: the account that holds belong to; empty for the agent's own, as which the commands run.
        snapshot_age_s: seconds for which one picture of the queue serves all buyers.
        verify: whether every offer is checked with `qrsub -w v`.
        for_sale: the part that is for sale, and when.
    """

    queue: Annotated[str, _OBJECT] = "all.q"
    parallel_environment: Annotated[str, _OBJECT] = "mpi"
    root: str = ""
    cell: Annotated[str, _OBJECT] = "default"
    commands: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    market_user: str = ""
    snapshot_age_s: Annotated[float, Bounds(0, 60)] = SNAPSHOT_AGE_S
    verify: bool = True
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
        settings.resource,
        settings.cores,
        options.for_sale,
        settings.state_dir,
        snapshot_age_s=options.snapshot_age_s,
        verified=options.verify,
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
    run = CommandRunner(environment_of(options, settings.resource), questions.ORDER_S)
    programs = programs_in(options.commands)
    for command in (programs.qstat, programs.qrstat, programs.qrsub, programs.qconf):
        if shutil.which(command[0]) is None:
            raise ConfigurationError(
                f"command {' '.join(command)!r} not found; install Grid Engine's commands on this computer",
                key=settings.resource,
            )
    try:
        system = GridEngine(
            run=run,
            queue=options.queue,
            environment=options.parallel_environment,
            market_user=_account(options.market_user, settings.resource),
            default_duration=_checked(run, programs, options, settings),
            programs=programs,
        )
        _check_cores(run, programs, options.queue, settings)
    except BatchSystemError as error:
        raise PluginError(NAME, error.reason, transient=error.transient) from error
    return system


def environment_of(options: GridEngineOptions, resource: str) -> dict[str, str]:
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
    given = {"SGE_ROOT": root} if root else {}
    return {**given, "SGE_CELL": options.cell, **options.environment}


def _account(name: str, resource: str) -> str:
    """Return the account that holds belong to.

    Raises:
        ConfigurationError: if it does not exist.
    """
    account = name or pwd.getpwuid(os.geteuid()).pw_name
    try:
        pwd.getpwnam(account)
    except KeyError as error:
        raise ConfigurationError(f"no account {account!r} on this computer", key=f"{resource}.market_user") from error
    return account


def _checked(run: Runner, programs: Programs, options: GridEngineOptions, settings: PluginSettings) -> Duration | None:
    """Check that Grid Engine's setup allows sales; return the assumed length of a job without a limit, None for ever.

    Raises:
        ConfigurationError: naming the setting to change, and how.
        BatchSystemError: it does not answer.
    """
    queue, environment = options.queue, options.parallel_environment
    slots = ask_of_some(questions.environment_settings(programs, environment), run)
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
    served = ask_of_some(questions.queue_settings(programs, queue), run)
    if "qname" not in served:
        key = f"{settings.resource}.queue"
        raise ConfigurationError(f"Grid Engine has no queue {queue!r}; `qconf -sql` lists the queues", key=key)
    if environment not in re.split(r"[\s,\[\]=]+", served.get("pe_list", "")):
        raise ConfigurationError(
            f"the queue {queue} serves no parallel environment {environment} (pe_list {served.get('pe_list')!r}); "
            f"`qconf -aattr queue pe_list {environment} {queue}` adds it",
            key=f"{settings.resource}.parallel_environment",
        )
    scheduler = ask(questions.scheduler_settings(programs), run)
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
    run, programs = system.run, system.programs
    account = pwd.getpwuid(os.geteuid()).pw_name
    managers, operators = (ask_of_some(question, run) for question in questions.administrators(programs))
    reservers = ask_of_some(questions.usersets(programs, (RESERVERS,)), run).get(RESERVERS, ())
    missing = []
    if account not in {*managers, *operators}:
        missing.append(f"`qconf -ao {account}` (lets it change who may use a reservation)")
    if account not in {*managers, *reservers}:
        missing.append(f"`qconf -au {account} {RESERVERS}` (lets it reserve)")
    if missing:
        do = f"as a manager, run {' and '.join(missing)}"
        return [Remark("privilege", resource, f"the account {account} may not sell slots", do)]
    return [Remark("privilege", resource, f"the account {account} may reserve in {system.environment}")]


def _check_cores(run: Runner, programs: Programs, queue: str, settings: PluginSettings) -> None:
    """Check that the queue has at least as many slots as the resource has cores in the configuration."""
    report = ask(questions.queues(programs), run)
    slots = sum(each.slots_total for each in report.instances if each.queue == queue)
    if slots < settings.cores:
        raise ConfigurationError(
            f"the queue {queue} has {slots} slots, fewer than the {settings.cores} cores of the resource",
            key=f"{settings.resource}.cores",
        )
