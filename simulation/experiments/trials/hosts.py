"""Runs market plans on two hosts (`trials.namespaces`), each with a Prosody of its own.

The two federate: users, bank, directory and the laboratory's resources live in one domain, the other sites' resources
in the other, and every message between the two passes both servers and the link. Latency, jitter and loss are those of
a relay in front of each server (`trials.relay`). Needs root, `ip` and Prosody with its resolver library.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

import psutil

from ramp.errors import TransportError
from ramp.model.instant import MILLISECOND, SECOND, Duration
from ramp.runtime.clock import SystemClock
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder, write_private
from ramp.servers.certificate import ensure_server_certificate
from ramp.servers.parent import tied
from ramp.servers.prosody import PLUGINS, store_accounts
from simulation.experiments.market.trading import DOMAIN, RunningMarket, Tally, trade_in_turn
from simulation.experiments.trials.namespaces import DOMAINS, Host, joined_hosts
from simulation.experiments.trials.plan import Links, MarketPlan
from simulation.experiments.trials.xmpp import LAUNCH_PER_AGENT_S, LAUNCH_S, swarm_toml
from simulation.market.actors import COMPOSITION

CLIENT_PORT: Final = 5222
SERVER_PORT: Final = 5269
BEHIND_PORT: Final = 5270
"""Where a server listens that has a relay in front of it."""

READY_LIMIT_S: Final = 90.0
_STOP_LIMIT_S: Final = 8.0
_PROSODY: Final = """-- written by RAMP for one run
{privileged}pidfile = "{state}/prosody.pid"
data_path = "{state}/data"
certificates = "{state}/tls"
modules_enabled = {{ "roster"; "saslauth"; "tls"; "disco"; "ping"; "smacks"; "dialback" }}
modules_disabled = {{ "register"; "register_ibr" }}
plugin_paths = {{ "{plugins}" }}
interfaces = {{ "{address}" }}
c2s_ports = {{ {client_port} }}
s2s_ports = {{ {server_port} }}
http_ports = {{ }}
https_ports = {{ }}
allow_registration = false
authentication = "internal_hashed"
storage = "internal"
c2s_require_encryption = true
s2s_require_encryption = false
s2s_secure_auth = false
unbound = {{ resolvconf = false; hoststxt = "{hosts}" }}
network_settings = {{ nagle = false }}
log = {{ {{ levels = {{ min = "warn" }}; to = "console" }} }}
VirtualHost "{domain}"
  ssl = {{ key = "{key}"; certificate = "{certificate}" }}
"""


def run_over_hosts(plans: Mapping[int, MarketPlan], tally: Tally) -> None:
    """Launch a market on two hosts, run plans in it one after another, and end it.

    Args:
        plans: by number; of one kind, as `simulation.experiments.market.trading.sharing` finds them, with links. The
            resources on hosts with at least a millisecond of latency live on the second host, and the link between the
            two has the mean of their latencies.
        tally: gets their results.

    Raises:
        TransportError: if hosts, servers or agents do not come up, or an agent ends in the middle.
    """
    plan = max(plans.values(), key=lambda each: each.users)
    assert plan.links is not None
    far = [each.name for each in plan.resources if _latency(plan, each.name) >= MILLISECOND]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ramp-hosts-")))
        config, state = folder / "swarm.toml", StateFolder(folder / "state")
        config.write_text(swarm_toml(plan).replace(f'domain = "{DOMAIN}"', f'domain = "{DOMAINS[0]}"', 1), "utf-8")
        state.prepare()
        agents = len(plan.resources) + plan.users
        opening = (SystemClock().now() // SECOND + round(LAUNCH_S + LAUNCH_PER_AGENT_S * agents)) * SECOND
        write_private(state.path / "started_at", str(opening - plan.age))
        passwords = _prepare_identities(plan, state, far)
        begun = time.perf_counter()
        link = round(fmean([_latency(plan, name) for name in far])) if far else 0
        hosts = stack.enter_context(joined_hosts(folder))
        processes = {}
        for number, host in enumerate(hosts, 1):
            accounts = {name: word for name, word in passwords.items() if (name in far) == (host.domain == DOMAINS[1])}
            server = _prosody(host, folder / f"server-{number}", BEHIND_PORT if link else SERVER_PORT, accounts)
            processes[f"server-{number}"] = stack.enter_context(server)
            if link:
                stack.enter_context(_relay(host, link, plan.links, plan.seed + number))
        near = [each.name for each in plan.resources if each.name not in far]
        groups = {
            "market": (hosts[0], ["directory", "bank"]),
            "users": (hosts[0], [f"user{number}" for number in range(1, plan.users + 1)]),
            "resources-1": (hosts[0], near),
            "resources-2": (hosts[1], far),
        }
        domain_of = dict.fromkeys(far, DOMAINS[1])
        for name, (host, names) in groups.items():
            if names:
                command = _group_command(host, config, state, names, domain_of)
                processes[name] = stack.enter_context(_group(command, names, state.logs / f"{name}.log"))
        market = RunningMarket(state, processes, opening, time.perf_counter() - begun, DOMAINS)
        trade_in_turn(plans, market, tally)


def _prepare_identities(plan: MarketPlan, state: StateFolder, far: Sequence[str]) -> dict[str, str]:
    """Make keys and passwords of all agents, before any process asks for them; the passwords by local name."""
    now = SystemClock().now()
    users = (f"user{number}" for number in range(1, plan.users + 1))
    roles = COMPOSITION.roles((each.name for each in plan.resources), users)
    keys = KeyStore(state.keys)
    keys.create_ca(now)
    for name, role in roles.items():
        keys.issue(f"{name}@{DOMAINS[1] if name in far else DOMAINS[0]}", role, now)
    return state.passwords(list(roles))


def _latency(plan: MarketPlan, name: str) -> Duration:
    assert plan.links is not None
    return plan.links.latency[plan.links.host_of[name]]


@contextlib.contextmanager
def _prosody(host: Host, state: Path, port: int, accounts: Mapping[str, str]) -> Iterator[psutil.Process]:
    (state / "data").mkdir(parents=True)
    tls = ensure_server_certificate(host.ca_file.parent, host.domain)
    configuration = state / "prosody.cfg.lua"
    configuration.write_text(
        _PROSODY.format(
            privileged="run_as_root = true\n" if os.geteuid() == 0 else "",
            state=state,
            address=host.address,
            client_port=CLIENT_PORT,
            server_port=port,
            hosts=state.parent / "hosts",
            plugins=PLUGINS,
            domain=host.domain,
            key=tls.key_file,
            certificate=tls.certificate_file,
        ),
        "utf-8",
    )
    store_accounts(configuration, host.domain, accounts)
    with (state / "prosody.log").open("wb") as log:
        process = subprocess.Popen(
            tied(host.command("prosody", "-F", "--config", str(configuration))),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    with _ended(process):
        yield psutil.Process(process.pid)


@contextlib.contextmanager
def _relay(host: Host, latency: Duration, links: Links, seed: int) -> Iterator[None]:
    told = {
        "host": host.address,
        "port": SERVER_PORT,
        "to_port": BEHIND_PORT,
        "latency_s": latency / SECOND,
        "jitter_s": links.jitter / SECOND,
        "loss": links.loss,
        "seed": seed,
    }
    command = host.command(sys.executable, "-m", "simulation.experiments.trials.relay", json.dumps(told))
    with _ended(subprocess.Popen(tied(command), stdin=subprocess.DEVNULL, start_new_session=True)):
        yield


def _group_command(
    host: Host, config: Path, state: StateFolder, names: Sequence[str], domain_of: dict[str, str]
) -> list[str]:
    told = {
        "config": str(config),
        "state": str(state.path),
        "host": host.address,
        "port": CLIENT_PORT,
        "ca_file": str(host.ca_file),
        "agents": names,
        "domains": domain_of,
    }
    return host.command(sys.executable, "-m", "simulation.experiments.trials.hosted_group", json.dumps(told))


@contextlib.contextmanager
def _group(command: Sequence[str], names: Sequence[str], log_path: Path) -> Iterator[psutil.Process]:
    events = log_path.with_suffix(".events")
    with log_path.open("wb") as log, events.open("wb") as told:
        process = subprocess.Popen(
            tied(command), stdin=subprocess.DEVNULL, stdout=told, stderr=log, start_new_session=True
        )
    with _ended(process):
        end = time.monotonic() + READY_LIMIT_S
        while True:
            lines = [
                json.loads(line) for line in events.read_text("utf-8").splitlines(keepends=True) if line.endswith("\n")
            ]
            if {line["agent"] for line in lines if line["event"] == "ready"} >= set(names):
                break
            if process.poll() is not None or time.monotonic() > end:
                said = log_path.read_text("utf-8", errors="replace").strip()[-500:]
                raise TransportError(f"the agents {', '.join(names)} did not come up: {said or 'no answer in time'}")
            time.sleep(0.05)
        yield psutil.Process(process.pid)


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_LIMIT_S)
                break
