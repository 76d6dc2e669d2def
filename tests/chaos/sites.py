"""Two sites of one market on this computer, each with agents and a Prosody of its own; the servers are federated."""

import ipaddress
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from ramp.errors import TransportError
from ramp.runtime.state_folder import StateFolder
from tests.chaos.market import SITES, ChaosMarket, configuration, machines

PORTS: Final = (15_222, 15_269)
"""Of clients and of servers; each run has addresses of the loopback interface of its own."""

COMMAND_LIMIT_S: Final = 300.0
"""How long a command may take, in seconds."""

_RAMP: Final = (sys.executable, "-c", "from ramp.cli.main import main; main()")


def two_sites(folder: Path, ledger: str = "") -> tuple[ChaosMarket, ChaosMarket]:
    """Write two sites' configurations; the market is at the first, and the second has not joined yet."""
    first, second = (f"{site}.example" for site in SITES)
    network = ipaddress.ip_address("127.64.0.0") + (os.getpid() % 2**20) * 4
    addresses = {first: network + 1, second: network + 2}
    made = []
    for site, domain, peer in ((SITES[0], first, second), (SITES[1], second, first)):
        client_port, server_port = PORTS
        tables = [
            "[federation]",
            f'listen = "{addresses[domain]}"',
            f"client_port = {client_port}",
            f"server_port = {server_port}",
            f'peers = {{ "{peer}" = "{addresses[peer]}:{server_port}" }}',
        ]
        tables += ["[site]", f'market = "{first}"', "directories = 2"] if domain == second else []
        path = folder / f"{site}.toml"
        text = configuration(
            server="prosody", ledger=ledger, domain=domain, site=site, own=domain == first, tables=tables
        )
        path.write_text(text, "utf-8")
        made.append(ChaosMarket(path, StateFolder((folder / site).absolute()), domain, site))
    return made[0], made[1]


def join(market: ChaosMarket, site: ChaosMarket, deposit: int) -> None:
    """Let every party of a site join a market that runs, by invitations and files; its agents are not started.

    Each user of the site gets the deposit, in credits.

    Raises:
        TransportError: if a command fails; says which, and what it told.
    """
    folder = market.config.parent
    there = ("--state-dir", str(site.state.path))
    here = ("--state-dir", str(market.state.path))
    for name, role in (*((each, "user") for each in site.users), *((each, "resource") for each in machines(site.name))):
        invitation, request, issued = (str(folder / f"{name}.{what}") for what in ("invitation", "request", "issued"))
        credited = ("--deposit", str(deposit)) if role == "user" else ()
        _run("invite", "--role", role, f"{name}@{site.domain}", *credited, "-o", invitation, *here)
        _run("join", invitation, str(site.config), "--request", request, *there)
        _run("invite", "sign", request, "-o", issued, *here)
        _run("join", invitation, str(site.config), "--certificate", issued, "--no-start", *there)


def _run(*arguments: str) -> None:
    done = subprocess.run([*_RAMP, *arguments], capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False)
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())[-500:]
        raise TransportError(f"`ramp {arguments[0]} {arguments[1]}` fails with status {done.returncode}: {said}")
