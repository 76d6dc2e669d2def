"""Figure 13 of the RAMP paper on two hosts: the users' experiment over XMPP, with a slow link between two servers.

The hosts are network namespaces of this machine, each with a Prosody of its own. The two servers federate: users, bank,
directory and the laboratory's resources live in one domain, the other sites' resources in the other, and every message
between the two passes both servers and the link. Latency, jitter and loss are those of a relay in front of each server.
Needs root, `ip` and Prosody with its resolver library.

ramp experiment run examples/studies/two_hosts.py:STUDY --out results --quick
"""

import asyncio
import contextlib
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Final

import psutil

from ramp.errors import ConfigurationError, TransportError
from ramp.model.instant import MILLISECOND, SECOND, Duration
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.sites import PROSODY
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.logs import log_to_stderr
from ramp.runtime.state_folder import StateFolder, write_private
from ramp.servers.certificate import ensure_server_certificate
from ramp.servers.parent import tied
from ramp.servers.prosody import PLUGINS, store_accounts
from simulation.experiments.market import network
from simulation.experiments.market.frame import mode_of, over_xmpp, repetitions_of
from simulation.experiments.market.trading import DOMAIN, RunningMarket, Tally, trade_in_turn
from simulation.experiments.market.users import plans_of
from simulation.experiments.trials.plan import Links, MarketPlan, Mode, table2_resources
from simulation.experiments.trials.xmpp import LAUNCH_PER_AGENT_S, LAUNCH_S, run_over_xmpp, swarm_toml
from simulation.market.actors import COMPOSITION

# -- hosts -------------------------------------------------------------------------------------------------------------

DOMAINS: Final = ("site-a.test", "site-b.test")
"""Of the laboratory and of the other sites; `.test` is reserved for such use (RFC 6761)."""

ADDRESSES: Final = ("10.77.31.1", "10.77.31.2")
_NAME: Final = "ramp-host-{pid}-{number}"
_PROBE: Final = f"ramp-probe-{os.getpid()}"


@dataclass(frozen=True, slots=True)
class Host:
    """One host: its network namespace, address, domain and the authority of its server's certificate."""

    namespace: str
    address: str
    domain: str
    ca_file: Path

    def command(self, *arguments: str) -> list[str]:
        """A command that runs on the host."""
        return [*_in(self.namespace), *arguments]


def reason_against() -> str:
    """Why a market cannot be spread over hosts here; empty if it can."""
    for program in ("ip", "prosody"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if os.geteuid() != 0:
        return "network namespaces need root"
    complaint = _try(["ip", "netns", "add", _PROBE])
    _try(["ip", "netns", "del", _PROBE])
    return f"network namespaces are not permitted: {complaint}" if complaint else ""


def _in(namespace: str) -> list[str]:
    return ["ip", "netns", "exec", namespace]


def _try(command: Sequence[str]) -> str:
    """Run a command; what it complains about, empty if it succeeds."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[0]


@contextlib.contextmanager
def joined_hosts(folder: Path) -> Iterator[tuple[Host, Host]]:
    """Two hosts and the link between them; removed afterwards.

    Args:
        folder: for their servers' certificates and the file `hosts` with their addresses.

    Raises:
        TransportError: if the kernel refuses a command.
    """
    _remove_left_behind()
    pid = os.getpid()
    names = [_NAME.format(pid=pid, number=number) for number in (1, 2)]
    (folder / "hosts").write_text("".join(f"{a} {d}\n" for a, d in zip(ADDRESSES, DOMAINS, strict=True)), "utf-8")
    try:
        for command in joining_commands(names, [f"rv{pid}{letter}" for letter in "ab"]):
            complaint = _try(command)
            if complaint:
                raise TransportError(f"{' '.join(command)}: {complaint}")
        hosts = [
            Host(name, address, domain, ensure_server_certificate(folder / f"tls-{domain}", domain).ca_file)
            for name, address, domain in zip(names, ADDRESSES, DOMAINS, strict=True)
        ]
        yield hosts[0], hosts[1]
    finally:
        for name in names:
            _try(["ip", "netns", "del", name])


def joining_commands(names: Sequence[str], ends: Sequence[str]) -> list[list[str]]:
    """Return the commands that make two namespaces and the link between them."""
    commands = [["ip", "netns", "add", name] for name in names]
    commands += [["ip", "-n", name, "link", "set", "lo", "up"] for name in names]
    first = ["ip", "link", "add", ends[0], "netns", names[0]]
    commands.append([*first, "type", "veth", "peer", "name", ends[1], "netns", names[1]])
    for name, end, address in zip(names, ends, ADDRESSES, strict=True):
        commands.append(["ip", "-n", name, "addr", "add", f"{address}/24", "dev", end])
        commands.append(["ip", "-n", name, "link", "set", end, "up"])
    return commands


def _remove_left_behind() -> None:
    """Remove the hosts of experiments that were killed before they could do it themselves."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        name = line.partition(" ")[0]
        pid = name.removeprefix(_NAME.partition("{")[0]).partition("-")[0]
        if name.startswith(_NAME.partition("{")[0]) and pid.isdigit() and not Path(f"/proc/{pid}").exists():
            _try(["ip", "netns", "del", name])


# -- a slow line in user space -----------------------------------------------------------------------------------------

CHUNK_BYTES = 65_536
RETRANSMISSION_S = 0.2
"""TCP's least retransmission time-out on Linux."""


class Line:
    """One direction of one connection.

    Args:
        latency_s: time on the line.
        jitter_s: mean of an exponential delay on top.
        loss: probability that a chunk needs a retransmission.
        source: of randomness.
    """

    def __init__(self, latency_s: float, jitter_s: float, loss: float, source: random.Random) -> None:
        self._latency_s, self._jitter_s, self._loss = latency_s, jitter_s, loss
        self._random = source
        self._last = 0.0

    def arrival(self, now: float) -> float:
        """When a chunk sent now arrives; never before an earlier one."""
        at = now + self._latency_s
        if self._jitter_s:
            at += self._random.expovariate(1 / self._jitter_s)
        while self._loss and self._random.random() < self._loss:
            at += RETRANSMISSION_S
        self._last = max(self._last, at)
        return self._last


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: Line) -> None:
    """Pass one direction on until it ends."""
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        """Write each chunk when it arrives, in order."""
        while True:
            at, chunk = await chunks.get()
            await asyncio.sleep(max(0.0, at - loop.time()))
            if not chunk:
                break
            writer.write(chunk)
            await writer.drain()

    delivering = asyncio.create_task(deliver())
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(CHUNK_BYTES):
            chunks.put_nowait((line.arrival(loop.time()), chunk))
    chunks.put_nowait((line.arrival(loop.time()), b""))
    with contextlib.suppress(ConnectionError):
        await delivering
    writer.close()


async def serve(host: str, port: int, to_port: int, latency_s: float, jitter_s: float, loss: float, seed: int) -> None:
    """Relay connections from `port` to `to_port` for ever, with a mean exponential jitter and a loss probability.

    The latency holds in each direction; the seed draws jitter and losses.
    """
    source = random.Random(seed)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client to the server behind, both ways with delays of their own."""
        try:
            behind_reader, behind_writer = await asyncio.open_connection(host, to_port)
        except ConnectionError:
            writer.close()
            return
        await asyncio.gather(
            pass_on(reader, behind_writer, Line(latency_s, jitter_s, loss, source)),
            pass_on(behind_reader, writer, Line(latency_s, jitter_s, loss, source)),
        )

    async with await asyncio.start_server(connected, host, port) as server:
        await server.serve_forever()


# -- a host's process of agents ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FederatedConfig(SwarmConfig):
    """A swarm in several domains.

    Attributes:
        domain_of: domain of the agents that are not in the swarm's own.
    """

    domain_of: Mapping[str, str] = field(default_factory=dict)

    def address(self, local_name: str) -> str:
        """Full name of an agent: `name@domain` with the domain of its host."""
        return f"{local_name}@{self.domain_of.get(local_name, self.domain)}"


def federated(config: SwarmConfig, domain_of: Mapping[str, str]) -> FederatedConfig:
    """Return a configuration with the domains of its agents."""
    given = {entry.name: getattr(config, entry.name) for entry in fields(SwarmConfig)}
    return FederatedConfig(**given, domain_of=domain_of)


async def run_group(
    config: str, state: str, host: str, port: int, ca_file: str, agents: list[str], domains: dict[str, str]
) -> None:
    """Run a process of agents, as `ramp.agents.group` does, each agent in the domain of its own host's server."""
    # only here, for SPADE takes a second
    from ramp.agents.group import run_agents
    from ramp.xmpp.link import TransportSettings

    found = federated(load_config(Path(config)), domains)
    settings = TransportSettings(servers=((host, port),), ca_file=Path(ca_file), federation=True, quotas=found.quotas)
    await run_agents(found, StateFolder(Path(state)), settings, agents)


# -- a market on both hosts --------------------------------------------------------------------------------------------

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
    command = host.command(sys.executable, __file__, "relay", json.dumps(told))
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
    return host.command(sys.executable, __file__, "agents", json.dumps(told))


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


# -- the study ---------------------------------------------------------------------------------------------------------

SPREAD = "two hosts"
"""In place of the paper's fifteen: the laboratory is one host, the other sites are the second."""


def cases(run):
    """The same markets on one host and on two, with links as they are and bad ones."""
    if mode_of(run) is Mode.SIMULATED:
        raise ConfigurationError("got --simulated, expected --xmpp; the study network has hosts in virtual time")
    if reason := reason_against():
        raise ConfigurationError(f"this computer cannot be two hosts: {reason}")
    resources = table2_resources()[: network.RESOURCES]
    users = run.either(network.USERS[Mode.XMPP], network.QUICK_USERS)
    repetitions = repetitions_of(run, network.REPETITIONS)
    return {
        SPREAD if name == network.SPREAD else name: [
            replace(plan, server=PROSODY) for plan in plans_of(run.seed, repetitions, users, resources, links)
        ]
        for name, links in network.deployments_of(resources).items()
    }


def run_plans(plans, tally):
    """Run plans where their links want it."""
    run_them = run_over_xmpp if next(iter(plans.values())).links is None else run_over_hosts
    run_them(plans, tally)


STUDY = replace(
    network.EXPERIMENTS[0],
    name="network-two-hosts",
    about="1 to 30 users with the resources on two hosts, over XMPP (RAMP, figure 13)",
    cases=cases,
    perform=lambda study, run, plans, processes, on_progress: over_xmpp(plans, on_progress, run_plans),
    parameters=lambda found: {
        **network.EXPERIMENTS[0].parameters(found),
        "line": "a relay in front of each server",
        "skipped": "",
    },
    options={**network.EXPERIMENTS[0].options, "mode": Mode.XMPP},
)


def main() -> int:
    """Run a part of a host until SIGTERM, inside its network namespace; its arguments come as JSON."""
    part, told = sys.argv[1], json.loads(sys.argv[2])
    log_to_stderr(logging.WARNING)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run({"relay": serve, "agents": run_group}[part](**told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
