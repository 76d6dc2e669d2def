"""A market in processes, as the end-to-end tests drive it: its configuration, its life, its users' commands."""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ramp.client import access, swarm
from ramp.control.codec import decode_request, encode_event
from ramp.control.events import Event
from ramp.control.requests import Submit
from ramp.errors import TransportError
from ramp.model.contents.directory import RESOURCE_SERVICE
from ramp.model.instant import HOUR, MINUTE, SECOND, Instant
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol.events import AuctionOptions
from ramp.rfql.request_for_quotation import write_request
from ramp.runtime.clock import SystemClock
from ramp.runtime.state_folder import StateFolder
from tests.blocking_line import BlockingLine, connected
from tests.waiting import LIMIT_S, until

ROOT = Path(__file__).parents[3]
ARMED_SWARM = Path(__file__).with_name("armed_swarm.py")
PATIENT_TIMING = {
    "retry_first_s": 0.5,
    "retry_longest_s": 1,
    "vote_limit_s": 600,
    "hold_time_s": 900,
    "decision_margin_s": 1,
    "agreement_validity_s": 840,
    "confirm_limit_s": 600,
    "cancellation_limit_s": 600,
    "amendment_window_s": 600,
    "query_limit_s": 600,
    "discovery_limit_s": 600,
    "heartbeat_s": 1,
    "lease_s": 3600,
}
"""Quick retries, for agents that are killed and come back; and no limit that a busy computer runs into.

A bank sets money aside for a quarter of an hour at most.
"""

ROUND_TIME = 10 * MINUTE
"""Limit of a round of bidding; it ends once everybody who was called has answered."""


@dataclass(frozen=True)
class Machine:
    """A resource that bids its one price, in credits per core hour, from the first round on.

    By the paper's formula a start price far above the minimum makes the first step down go below the minimum. The
    plug-in is `steady` with an empty machine unless another one is named.
    """

    name: str
    cores: int
    price: int = 30
    plugin: str = "steady"
    pricing: str = "ramp"

    @property
    def start_price(self) -> int:
        """Far above the minimum."""
        return self.price + 10_000


SMALL_AND_BIG = (
    Machine("small1", 64, 20),
    Machine("small2", 64, 25),
    Machine("big1", 256, 35),
    Machine("big2", 256, 40),
)


def own_id(*words: object) -> str:
    """An id of a request that no other try of the same test has: a market ends a request of one id only once."""
    return "-".join(map(str, ("request", *words, secrets.token_hex(2)))).replace(" ", "-")


def unit(number: int, cores: int, start: Instant, hours: int = 1, price: int = 70) -> RequestUnit:
    """A unit that runs exactly in its window."""
    length = hours * HOUR
    return RequestUnit(number, price, start + length, TotalCores(cores), start, length)


def write_config(
    path: Path,
    *,
    users: dict[str, int],
    machines: Sequence[Machine] = SMALL_AND_BIG,
    kind: str = "embedded",
    timing: dict[str, float] | None = None,
    ledger: str = "",
    per_process: int = 1,
    accounts: Sequence[str] = (),
    quotas: dict[str, float] | None = None,
    guests: dict[str, Any] | None = None,
    standby_lease_s: int = 0,
    server: dict[str, Any] | None = None,
) -> Path:
    """Write a swarm's configuration; deposits in credits, accounts those of agents that are not started with it."""
    lines = ["[market]", f"resources_per_process = {per_process}"]
    if ledger:
        lines.append(f"ledger = {json.dumps(ledger)}")
    if standby_lease_s:
        lines += ["[bank]", "standby = true", f"lease_s = {standby_lease_s}"]
    lines += ["[server]", f'kind = "{kind}"', f"accounts = {json.dumps(list(accounts))}"]
    lines += [*(f"{key} = {json.dumps(value)}" for key, value in (server or {}).items()), "[quotas]"]
    lines += [*(f"{key} = {value}" for key, value in (quotas or {}).items()), "[guests]"]
    lines += [*(f"{key} = {json.dumps(value)}" for key, value in (guests or {}).items()), "[timing]"]
    lines += [f"{key} = {value}" for key, value in (PATIENT_TIMING if timing is None else timing).items()]
    for name, deposit in users.items():
        lines += ["[[users]]", f'name = "{name}"', f"deposit = {deposit}"]
    for machine in machines:
        lines += [f"[machines.{machine.name}]", f"cores = {machine.cores}"]
        lines += ["[[resources]]", f'name = "{machine.name}"', f'machine = "{machine.name}"']
        lines += [f"start_price = {machine.start_price}", f"minimum_price = {machine.price}"]
        lines += [f'plugin = "{machine.plugin}"', f'pricing = "{machine.pricing}"', "options = { load = 0.0 }"]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


class Market:
    """A swarm in processes of its own.

    Args:
        config: its configuration's file.
        state: its state folder's path.
        armed: whether its agents heed `arm`.
    """

    def __init__(self, config: Path, state: Path, *, armed: bool = False) -> None:
        self.config = config
        self.state = StateFolder(state)
        self.armed = armed
        self._traps = state / "traps"
        self._armed = 0
        self._pid = 0
        self._supervisor: subprocess.Popen[bytes] | None = None

    # -- life ----------------------------------------------------------------------------------------------------

    def up(self) -> dict[str, Any]:
        """Launch it and wait until everybody is ready."""
        if not self.armed:
            status = asdict(swarm.start_detached(self.config, self.state))
            self._pid = int(status["pid"])
            return status
        for folder in (self._traps, self.state.path / "steps"):
            folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(ARMED_SWARM), str(self.config), "--state-dir", str(self.state.path)]
        self.state.prepare()
        with (self.state.logs / "supervisor.log").open("ab") as log:
            self._supervisor = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=ROOT
            )
        return until(self._is_up, lambda: f"the swarm is up; status {self.status()}")

    def _is_up(self) -> dict[str, Any] | None:
        assert self._supervisor.poll() is None, self.logs()
        status = self.status()
        return status if status is not None and status["state"] == "up" else None

    def down(self) -> bool:
        """Stop it in good order."""
        stopped = swarm.stop(self.state)
        if self._supervisor is not None:
            self._supervisor.wait(LIMIT_S)
        return stopped

    def end(self) -> None:
        """Stop it whatever has become of it."""
        with contextlib.suppress(TransportError, OSError):
            self.down()
        status = self.status()
        if status is not None:
            os.kill(status["pid"], signal.SIGKILL)
        process = Path(f"/proc/{self._pid}/cmdline")  # it may run although its state folder is gone
        if process.exists() and str(self.state.path) in process.read_text("utf-8"):
            os.kill(self._pid, signal.SIGKILL)
        if self._supervisor is not None and self._supervisor.poll() is None:
            self._supervisor.kill()
            self._supervisor.wait(LIMIT_S)

    def status(self) -> dict[str, Any] | None:
        """What `ramp ps` would tell."""
        found = access.status(self.state)
        return None if found is None else asdict(found)

    def agent(self, name: str) -> dict[str, Any]:
        """What is known of one agent."""
        status = self.status()
        assert status is not None, f"no swarm is up\n{self.logs()}"
        return next(entry for entry in status["agents"] if entry["name"] == name)

    def pids(self) -> list[int]:
        """Processes of supervisor, server and agents."""
        status = self.status()
        return [status["pid"], status["server"]["pid"], *(entry["pid"] for entry in status["agents"])]

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to an agent's process."""
        os.kill(self.agent(name)["pid"], number)

    def lose(self, name: str) -> None:
        """Kill an agent's process for good: whatever is started in its place does nothing."""
        assert self.armed
        (self._traps / f"{name}.lost").touch()
        self.kill(name)

    def wait_ready(self) -> None:
        """Wait until every agent runs, and every directory knows every resource and would after a restart."""
        agents = self.status()["agents"]
        names = sorted(entry["name"] for entry in agents if entry["role"] == "resource")
        directories = [entry["name"] for entry in agents if entry["role"] == "directory"]

        def ready() -> bool:
            status = self.status()
            if status is None or any(entry["state"] not in ("ready", "standby") for entry in status["agents"]):
                return False
            return self.listed() == names and all(self.written_down(each) == names for each in directories)

        until(ready, lambda: f"everybody is ready: {self.status()}, listed {self.listed()}")

    def written_down(self, directory: str) -> list[str]:
        """The resources from which a directory's next life begins; it saves them soon after a change."""
        known = self.state.registered(directory)
        return sorted(each.name.partition("@")[0] for each in known if each.service == RESOURCE_SERVICE)

    def users(self) -> list[str]:
        """Local names of the users."""
        return [entry["name"] for entry in self.status()["agents"] if entry["role"] == "user"]

    def logs(self) -> str:
        """The ends of all logs, for messages."""
        return "\n".join(
            f"== {path.name}: {path.read_text()[-2000:]}" for path in sorted(self.state.logs.glob("*.log"))
        )

    # -- traps ---------------------------------------------------------------------------------------------------

    def arm(
        self,
        role: str,
        act: str,
        when: str,
        nth: int = 1,
        number: signal.Signals = signal.SIGKILL,
        pid: int = 0,
        agent: str = "",
    ) -> None:
        """Let an agent end itself, or another process, at its nth act from now on (`armed_group`).

        It is the agent of that name, or the first of its role.
        """
        assert self.armed
        for path in self._traps.iterdir():
            path.unlink()
        self._armed += 1
        trap = {"role": role, "act": act, "when": when, "nth": nth, "signal": int(number), "pid": pid, "agent": agent}
        trap["number"] = self._armed
        whole = self._traps / ".armed"
        whole.write_text(json.dumps(trap), "utf-8")
        whole.rename(self._traps / "armed.json")

    def victim(self) -> str | None:
        """The local name of the agent that walked into the trap, or None."""
        for path in self._traps.glob("*.victim"):
            return path.stem
        return None

    def steps(self, agent: str, conversations: Collection[str]) -> list[str]:
        """What an agent has sent in some conversations, in order: `receiver performative Content`."""
        path = self.state.path / "steps" / f"{agent}.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.partition(" ")[2] for line in lines if line.partition(" ")[0] in conversations]

    # -- a user's commands ---------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def line(self, user: str) -> Iterator[BlockingLine]:
        """A connection to a user's agent, which may just be starting again."""
        with contextlib.ExitStack() as stack:

            def open_line() -> BlockingLine | None:
                with contextlib.suppress(TransportError):
                    return stack.enter_context(connected(self.state.socket(user)))
                return None

            yield until(open_line, lambda: f"{user} listens: {self.status()}")

    def ask(self, user: str, request: dict[str, Any]) -> dict[str, Any]:
        """The last event of a request as it is on the wire; asked again when the agent is killed meanwhile."""

        def answered() -> dict[str, Any] | None:
            with contextlib.suppress(TransportError), self.line(user) as line:
                *_, last = line.events(decode_request(json.dumps(request).encode()))
                return _on_the_wire(last)
            return None

        return until(answered, f"{user} answers {request}")

    def submit(self, user: str, request_id: str, units: Sequence[RequestUnit], **options: Any) -> Iterator[dict]:
        """Submit a request and yield its events as they are on the wire; options are those of `AuctionOptions`."""
        document = write_request(RequestForQuotation(tuple(units)))
        submission = Submit(document, request_id, AuctionOptions(**{"rounds": 2, "round_time": ROUND_TIME, **options}))
        with self.line(user) as line:
            yield from map(_on_the_wire, line.events(submission))

    @contextlib.contextmanager
    def submitted(self, user: str, request_id: str, units: Sequence[RequestUnit], **options: Any) -> Iterator[Any]:
        """Submit a request and go on; yields an iterator over the events still to come."""
        with contextlib.closing(self.submit(user, request_id, units, **options)) as events:
            assert next(events)["event"] == "submitted"
            yield events

    def buy(self, user: str, request_id: str, units: Sequence[RequestUnit], **options: Any) -> dict[str, Any]:
        """Submit a request and return its outcome, also when the user's agent is killed meanwhile."""
        try:
            for event in self.submit(user, request_id, units, **options):
                assert event["event"] != "refused", event
                if event["event"] == "request_ended":
                    return event["outcome"]
        except (TransportError, OSError):
            pass
        return self.outcome(user, request_id)

    def outcome(self, user: str, request_id: str) -> dict[str, Any]:
        """How a request ends; waits for it, also over restarts of the user's agent."""
        ended = self.ask(user, {"verb": "watch", "request_id": request_id})
        assert ended["event"] == "request_ended", ended
        return ended["outcome"]

    def agreements(self, user: str) -> list[dict[str, Any]]:
        """A user's agreements with their states and files."""
        return self.ask(user, {"verb": "list_agreements"})["agreements"]

    def account(self, user: str) -> dict[str, Any]:
        """What the bank says of a user's account."""
        answered = self.ask(user, {"verb": "account_asked", "query_id": "", "since": None, "until": None})
        assert answered["event"] == "account_statement", answered
        return answered

    def listed(self) -> list[str]:
        """Local names of the resources that the directory knows."""
        answered = self.ask(self.users()[0], {"verb": "resources_asked", "query_id": ""})
        if answered["event"] != "directory_listing":
            return []
        return sorted(name.partition("@")[0] for name in answered["names"])


def _on_the_wire(event: Event) -> dict[str, Any]:
    return json.loads(encode_event(event))


def in_hours(hours: int) -> Instant:
    """A whole second so many hours from now."""
    return SystemClock().now() // SECOND * SECOND + hours * HOUR
