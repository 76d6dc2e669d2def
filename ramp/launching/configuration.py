"""How a swarm's resources launch jobs, read from its configuration: the tables `[launching]` and `[accounts]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from ramp.errors import ConfigurationError
from ramp.launching.acting import Acting, system_python
from ramp.model.instant import MINUTE, SECOND
from ramp.options import Seconds, Wanted
from ramp.protocol.resource.jobs.launching import HANDOVER, LOCAL, NONE, OWN_ACCOUNT, Application, LaunchTerms

BATCH_SYSTEMS: Final = ("slurm", "gridengine")
"""Executors that submit jobs to a batch system."""

Executor = Literal["none", "local", "slurm", "gridengine", "handover"]
"""No jobs, the agent's own computer (simulated machines), a batch system, or the buyers themselves."""

_ACCOUNT: Final = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")


def _is_account(text: str) -> bool:
    return text == OWN_ACCOUNT or (text != "root" and _ACCOUNT.fullmatch(text) is not None)


LocalAccount = Annotated[
    str, Wanted(f'a local account such as "alice" that is not root, or "{OWN_ACCOUNT}"', _is_account)
]
_FullPath = Annotated[
    str, Wanted('a full path such as "/scratch/ramp-jobs"', lambda text: text == "" or text.startswith("/"))
]


@dataclass(frozen=True, slots=True)
class LaunchingConfig:
    """Settings for launching jobs on bought slots.

    Attributes:
        executor: what runs the jobs of resources that name no other: `none`, `local` (on this computer: for simulated
            machines), `slurm` or `gridengine` (that batch system), or `handover` (the buyer's account gets the slot,
            and runs what it likes there by itself).
        worker: full path of the installed worker, which `sudo` runs as a buyer's account; not needed where the agents
            run as root.
        folder: where job folders are made, one folder an account, if not in the accounts' homes; the nodes of the
            machine see it under the same path.
        grace: delay of a start by `local` that still counts as punctual, in seconds.
        delivery_limit: delay, in seconds, after which `local` gives up a job that it cannot start; the slot then counts
            as not delivered and is refunded.
    """

    executor: Executor = NONE
    worker: _FullPath = "/usr/local/libexec/ramp-job-worker"
    folder: _FullPath = ""
    grace: Seconds = 10 * SECOND
    delivery_limit: Seconds = 5 * MINUTE


def named_accounts(accounts: Mapping[str, str], domain: str) -> dict[str, str]:
    """Return local accounts by the buyers' full names, `*@DOMAIN` for everyone of a domain.

    Args:
        accounts: by name; buyers of `domain` may have their local name only.
        domain: of this market.
    """
    return {name if "@" in name else f"{name}@{domain}": account for name, account in accounts.items()}


def launch_terms(
    launching: LaunchingConfig,
    executor: Executor,
    accounts: Mapping[str, str],
    applications: tuple[Application, ...] = (),
) -> LaunchTerms | None:
    """Return how a resource launches jobs; None if it launches none.

    Raises:
        ConfigurationError: it cannot launch jobs in this way.
    """
    if applications and executor in (NONE, HANDOVER):
        raise ConfigurationError(
            f"got {executor!r}, expected one that launches jobs: applications need it", key="executor"
        )
    if executor == NONE:
        return None
    if executor != LOCAL and OWN_ACCOUNT in accounts.values():
        right = f"accounts other than the agent's own: {OWN_ACCOUNT} is for machines that are simulated"
        raise ConfigurationError(f"got {executor!r}, expected {right}", key="executor")
    return LaunchTerms(executor, accounts, launching.grace, launching.delivery_limit, applications)


def acting_by(launching: LaunchingConfig) -> Acting:
    """Return the programs for acting as other accounts."""
    return Acting(launching.worker, system_python(), launching.folder)
