"""How a swarm's resources launch jobs, read from its configuration: the tables `[launching]` and `[accounts]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ramp.launching.acting import Acting, system_python
from ramp.model.instant import MINUTE, SECOND, Duration
from ramp.options import nearest_name
from ramp.protocol.resource.jobs.launching import HANDOVER, LOCAL, OWN_ACCOUNT, LaunchTerms

NONE: Final = "none"
BATCH_SYSTEMS: Final = ("slurm", "gridengine")
"""Executors that submit jobs through PSI/J, by PSI/J's names."""

EXECUTORS: Final = (NONE, LOCAL, *BATCH_SYSTEMS, HANDOVER)
"""No jobs, the agent's own computer (simulated machines), a batch system, or the buyers themselves."""

_ACCOUNT: Final = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")


@dataclass(frozen=True, slots=True)
class LaunchingConfig:
    """Settings for launching jobs on bought slots.

    Attributes:
        executor: what runs the jobs of resources that name no other: `none`, `local` (on this computer: for simulated
            machines), `slurm` or `gridengine` (that batch system, through PSI/J), or `handover` (the buyer's account
            gets the slot, and runs what it likes there by itself).
        worker: full path of the installed worker, which `sudo` runs as a buyer's account; not needed where the agents
            run as root.
        python: interpreter for the worker where it need not be installed; by default the system's.
        psij_python: full path of an interpreter that has PSI/J, for `slurm` and `gridengine`; the accounts can run it.
        folder: where job folders are made, one folder an account, if not in the accounts' homes; the nodes of the
            machine see it under the same path.
        environment: variables of the agents' environment that the worker is given.
        grace: delay of a start by `local` that still counts as punctual, in seconds.
        delivery_limit: delay, in seconds, after which `local` gives up a job that it cannot start; the slot then counts
            as not delivered and is refunded.
    """

    executor: str = NONE
    worker: str = "/usr/local/libexec/ramp-job-worker"
    python: str = ""
    psij_python: str = ""
    folder: str = ""
    environment: tuple[str, ...] = ()
    grace: Duration = 10 * SECOND
    delivery_limit: Duration = 5 * MINUTE


class TableReader(Protocol):
    """The parts of `ramp.runtime.configuration.reader.Reader` that this module uses."""

    def wrong(self, key: str, value: object, right: str) -> None: ...

    def unknown(self, where: str, table: Mapping[str, Any], known: set[str]) -> None: ...

    def text(self, where: str, table: Mapping[str, Any], key: str, default: str | None = None) -> str: ...

    def table(self, parent: Mapping[str, Any], key: str) -> Mapping[str, Any]: ...


_PATHS: Final = {
    "worker": "as in sudoers",
    "psij_python": 'such as "/opt/psij/bin/python"',
    "folder": 'such as "/scratch/ramp-jobs"',
}
LAUNCHING_KEYS: Final = {"executor", "python", "environment", "grace_s", "delivery_limit_s", *_PATHS}


def read_launching(reader: TableReader, table: Mapping[str, Any], durations: Mapping[str, Duration]) -> LaunchingConfig:
    """Read the table `[launching]`; `durations` are its values in seconds, already read."""
    reader.unknown("launching.", table, LAUNCHING_KEYS)
    standard = LaunchingConfig()
    environment = table.get("environment", [])
    if not isinstance(environment, list) or not all(isinstance(name, str) for name in environment):
        reader.wrong("launching.environment", environment, 'a list of names such as ["LD_LIBRARY_PATH"]')
        environment = []
    paths = {key: reader.text("launching.", table, key, getattr(standard, key)) for key in _PATHS}
    for key, path in paths.items():
        if path and not path.startswith("/"):
            reader.wrong(f"launching.{key}", path, f"a full path, {_PATHS[key]}")
    return LaunchingConfig(
        executor=_executor(reader, "launching.", table, standard.executor),
        **paths,
        python=reader.text("launching.", table, "python", standard.python),
        environment=tuple(environment),
        grace=durations.get("grace", standard.grace),
        delivery_limit=durations.get("delivery_limit", standard.delivery_limit),
    )


def read_accounts(reader: TableReader, where: str, table: Mapping[str, Any], domain: str) -> dict[str, str]:
    """Return local accounts by the buyers' full names, `*@DOMAIN` for everyone of a domain.

    Args:
        reader: notes problems.
        where: name of the table.
        table: the table.
        domain: domain of buyers with a local name only.
    """
    found = {}
    for name, account in table.items():
        if not isinstance(account, str) or (account != OWN_ACCOUNT and not _ACCOUNT.fullmatch(account)):
            reader.wrong(f"{where}{name}", account, f'a local account such as "{name}", or "{OWN_ACCOUNT}"')
        elif account == "root":
            reader.wrong(f"{where}{name}", account, "an account that is not root")
        else:
            found[name if "@" in name else f"{name}@{domain}"] = account
    return found


def launch_terms(
    reader: TableReader,
    where: str,
    table: Mapping[str, Any],
    launching: LaunchingConfig,
    accounts: Mapping[str, str],
    domain: str,
    *,
    reserves: bool = True,
) -> LaunchTerms | None:
    """Return how a resource launches jobs; None if it launches none.

    Args:
        reader: notes problems.
        where: place of the resource in the file.
        table: table of the resource, whose `executor` and `accounts` override those of all.
        launching: settings of all resources.
        accounts: accounts of all resources.
        domain: domain of buyers with a local name only.
        reserves: whether jobs run in reservations, through PSI/J; otherwise in a job of a queue.
    """
    executor = _executor(reader, where, table, launching.executor)
    own = read_accounts(reader, f"{where}accounts.", reader.table(table, "accounts"), domain)
    if executor == NONE:
        return None
    mapped = {**accounts, **own}
    if executor in BATCH_SYSTEMS and reserves and not launching.psij_python:
        right = f"another one, or launching.psij_python set: jobs get to {executor} through PSI/J (docs/launching.md)"
        reader.wrong(f"{where}executor", executor, right)
    if executor != LOCAL and OWN_ACCOUNT in mapped.values():
        right = f"accounts other than the agent's own: {OWN_ACCOUNT} is for machines that are simulated"
        reader.wrong(f"{where}executor", executor, right)
    return LaunchTerms(executor, mapped, launching.grace, launching.delivery_limit)


def acting_by(launching: LaunchingConfig) -> Acting:
    """Return the programs for acting as other accounts."""
    return Acting(launching.worker, launching.python or system_python(), launching.folder)


def _executor(reader: TableReader, where: str, table: Mapping[str, Any], default: str) -> str:
    name = reader.text(where, table, "executor", default)
    if name in EXECUTORS:
        return name
    reader.wrong(f"{where}executor", name, f"{', '.join(EXECUTORS)}{nearest_name(name, EXECUTORS)}")
    return NONE
