"""The market of a chaos run: two sites of machines, two directories, some users, everything on loopback."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ramp.client import access, swarm
from ramp.control.status import Health, SwarmStatus, headline
from ramp.errors import RampError
from ramp.runtime.state_folder import StateFolder

AGAIN_LIMIT_S: Final = 300.0
"""How long anything may take to be well again, in seconds, on however busy a computer; longer is a finding."""

LOOK_S: Final = 0.1
"""Pause between two looks at a market, in seconds."""

DOMAIN: Final = "localhost"

USERS: Final = {"": ("alice", "bob", "carol"), "north": ("alice",), "south": ("sofia",)}
"""Users of a market of one site, and of each of two sites."""

DEPOSIT: Final = 100_000_000
"""Of each user, in credits: more than it can spend."""

SITES: Final = ("north", "south")
MACHINES_A_SITE: Final = 3
CORES: Final = 256

TIMING: Final = {
    "retry_first_s": 0.5,
    "retry_longest_s": 2,
    "hold_time_s": 20,
    "agreement_validity_s": 40,
    "confirm_limit_s": 20,
    "heartbeat_s": 1,
    "lease_s": 4,
}
"""Shorter than usual, so that a run of a minute sees every limit pass."""

BANK_LEASE_S: Final = 5


def machines(site: str = "") -> tuple[str, ...]:
    """Names of the resources of a site, or of both."""
    sites = (site,) if site else SITES
    return tuple(f"{each}{number}" for each in sites for number in range(1, MACHINES_A_SITE + 1))


def configuration(
    *,
    server: str,
    ledger: str = "",
    domain: str = DOMAIN,
    site: str = "",
    own: bool = True,
    tables: Sequence[str] = (),
) -> str:
    """The file of a market, or of one of its two sites.

    Args:
        server: `embedded` or `prosody`.
        ledger: URL of a PostgreSQL database, whose bank then has a standby; empty for SQLite.
        domain: of its agents.
        site: which of the two; empty where both are one.
        own: whether the bank and the directories are here.
        tables: further lines.
    """
    lines = ["[market]", f'domain = "{domain}"', f"resources_per_process = {MACHINES_A_SITE}"]
    lines += ["directories = 2"] if own else []
    if ledger and own:
        lines += [f"ledger = {json.dumps(ledger)}", "[bank]", "standby = true", f"lease_s = {BANK_LEASE_S}"]
    lines += ["[server]", f'kind = "{server}"', "[timing]", *(f"{key} = {value}" for key, value in TIMING.items())]
    lines += tables
    for user in USERS[site]:
        lines += ["[[users]]", f'name = "{user}"', *([f"deposit = {DEPOSIT}"] if own else [])]
    lines += ["[machines.node]", 'plugin = "steady"', f"cores = {CORES}", "options = { load = 0.0 }"]
    for rank, name in enumerate(machines(site)):
        lines += ["[[resources]]", f'name = "{name}"', 'machine = "node"']
        lines += [f"start_price = {60 + rank}", f"minimum_price = {20 + rank}"]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class ChaosMarket:
    """A market, or one of its two sites, in processes that end with this one; `name` is the site's, else empty."""

    config: Path
    state: StateFolder
    domain: str = DOMAIN
    name: str = ""

    @property
    def users(self) -> tuple[str, ...]:
        return USERS[self.name]

    def launch(self) -> None:
        """Launch it, also where an earlier life has not quite ended.

        Raises:
            RampError: if it does not come up within the limit.
        """
        end = time.monotonic() + AGAIN_LIMIT_S
        while True:
            try:
                swarm.start_detached(self.config, self.state, parent=os.getpid())
            except RampError:
                if time.monotonic() > end:
                    raise
                time.sleep(LOOK_S)
            else:
                return

    def status(self) -> SwarmStatus | None:
        """What is up, as far as the supervisor answers."""
        with contextlib.suppress(RampError):
            return access.status(self.state)
        return None

    def is_well(self) -> bool:
        """Whether everybody is up, by the first line of `ramp ps`."""
        found = self.status()
        return found is not None and headline(found).health is Health.UP

    def stop(self) -> None:
        swarm.stop(self.state)


def wait_until(condition: Callable[[], bool], limit_s: float = AGAIN_LIMIT_S) -> float | None:
    """Wait for something; returns how long that took in seconds, or None where it did not come within the limit."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit_s:
            return None
        time.sleep(LOOK_S)
    return time.monotonic() - began
