"""The folder of everything in a swarm that outlives its processes."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ramp.errors import ConfigurationError, StorageFailed
from ramp.model.instant import Instant
from ramp.runtime.atomic_writes import write_whole

if TYPE_CHECKING:
    from ramp.protocol.directory.party import KnownAgent

STATE_VARIABLE: Final = "RAMP_STATE"
"""Environment variable that names the state folder."""


class _Part:
    """A file or folder below the state folder, by the names on the way to it."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __get__(self, state: StateFolder, owner: type[StateFolder] | None = None) -> Path:
        return state.path.joinpath(*self._names)


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The state folder (`--state-dir`).

    Attributes:
        keys: the market's certificate authority and the agents' keys.
        server: files of the XMPP server.
        journals: one SQLite file for each agent: the records of its conversations.
        reservations: the plug-ins' durable state.
        without_market: reservations on simulated machines that were asked without a market.
        jobs: jobs of the agents' own account, on simulated machines.
        logs: logs of the processes.
        events: events for people, one file for each process.
        run: files that are valid only while a swarm runs.
        sockets: control sockets of the agents and the supervisor.
        supervisor_socket: the supervisor's socket for the status and for changes.
        ledger: the ledger's file, unless the configuration names a database.
        changes: changes of the running market (`ramp.runtime.configuration_changes`).
        audit_log: authors and times of all changes.
        invitations: the register of the market keeper's invitations (`ramp.runtime.joining`).
        joined: invitations with which this site has joined another market, one file each.
        web_sessions: sessions and open login links of the market's pages.
        web_results: results of experiments for the market's pages, unless another folder is named.
        web_address: address of the market's pages while they run.
        web_opener: page that opens the market in a browser.
        metrics_token: token of a metrics collector for `ramp web`, readable by the market's owner only.
    """

    path: Path

    keys = _Part("keys")
    server = _Part("server")
    journals = _Part("journals")
    reservations = _Part("reservations")
    without_market = _Part("without-market")
    jobs = _Part("jobs")
    logs = _Part("logs")
    events = _Part("logs", "events")
    run = _Part("run")
    sockets = _Part("run", "control")
    supervisor_socket = _Part("run", "control", "supervisor")
    ledger = _Part("ledger.sqlite")
    changes = _Part("changes.json")
    audit_log = _Part("audit.log")
    invitations = _Part("invitations.json")
    joined = _Part("joined")
    web_sessions = _Part("web-sessions.sqlite")
    web_results = _Part("results")
    web_address = _Part("run", "web-address")
    web_opener = _Part("run", "web-open.html")
    metrics_token = _Part("metrics-token")

    def prepare(self) -> None:
        """Create the folder and its parts, readable by its owner only.

        Raises:
            ConfigurationError: they cannot be made.
            StorageFailed: the disk is full.
        """
        try:
            for folder in (self.path, self.journals, self.reservations, self.logs, self.run):
                folder.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o700)
            self.sockets.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise StorageFailed(f"disk full: {self.path}") from error
            raise ConfigurationError(f"the state folder cannot be made: {error.strerror}", path=self.path) from error
        check_private(self.sockets)

    def journal(self, agent: str) -> Path:
        return self.journals / f"{agent}.sqlite"

    def socket(self, user: str) -> Path:
        return self.sockets / f"{user}.sock"

    def agreements(self, agent: str) -> Path:
        return self.path / "agreements" / agent

    def agreement(self, agent: str, agreement_id: str) -> Path:
        return self.agreements(agent) / f"{agreement_id}.xml"

    def payment(self, agent: str, agreement_id: str) -> Path:
        """Return the file of the bank's sealed payment notice for an agreement."""
        return self.agreements(agent) / f"{agreement_id}.paid.txt"

    def started_at(self, now: Instant) -> Instant:
        """Return the market's first start, where its machines' clocks begin, also after a restart."""
        path = self.path / "started_at"
        if not path.exists():
            write_private(path, str(now))
        return int(path.read_text("utf-8"))

    def passwords(self, names: list[str]) -> dict[str, str]:
        """Return XMPP passwords of agents, drawn at the first call and readable by the owner only."""
        path = self.path / "passwords.json"
        known: dict[str, str] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        missing = [name for name in names if name not in known]
        if missing:
            known.update({name: secrets.token_urlsafe(18) for name in missing})
            write_private(path, json.dumps(known, indent=1, sort_keys=True))
        return known

    def registered(self, directory: str) -> list[KnownAgent]:
        """Return the agents registered when a directory ended, since the start of the swarm."""
        from ramp.protocol.directory.party import KnownAgent

        try:
            rows = json.loads(self._registered(directory).read_text("utf-8"))
            return [KnownAgent(str(service), str(name), int(number)) for service, name, number in rows]
        except (OSError, ValueError, TypeError):
            return []

    def keep_registered(self, directory: str, registered: Sequence[KnownAgent]) -> None:
        """Save the agents registered with a directory; see `registered`."""
        rows = [(agent.service, agent.name, agent.number) for agent in registered]
        write_private(self._registered(directory), json.dumps(rows))

    def forget_registered(self) -> None:
        """Forget all registrations at the start of the swarm."""
        for kept in self.run.glob("registered-*.json"):
            kept.unlink(missing_ok=True)

    def _registered(self, directory: str) -> Path:
        return self.run / f"registered-{directory}.json"


def state_folder(path: Path | str | None) -> StateFolder:
    """Return the state folder with a path; by default $RAMP_STATE, $XDG_STATE_HOME/ramp, or ~/.local/state/ramp."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return StateFolder(Path(path or os.environ.get(STATE_VARIABLE) or Path(home, "ramp")).absolute())


@contextlib.contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """Check the folder of a control socket, and yield an address of the socket that is short enough for the kernel.

    The address leads over an open descriptor of the folder: a socket's path has at most 107 bytes (unix(7)).

    Raises:
        ConfigurationError: see `check_private`.
    """
    check_private(path.parent)
    descriptor = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)


def check_private(folder: Path) -> None:
    """Check that a folder for control sockets belongs to the user and is closed to others.

    A user who can put a socket there speaks for the agents.

    Raises:
        ConfigurationError: the path is no folder, belongs to another user, or is open to others.
    """
    try:
        found = folder.lstat()
    except OSError as error:
        raise ConfigurationError(f"the folder of the control sockets: {error.strerror}", path=folder) from error
    problem = ""
    if not stat.S_ISDIR(found.st_mode):
        problem = "is not a folder (it is a link or a file)"
    elif found.st_uid != os.geteuid():
        problem = f"belongs to user {found.st_uid}, not to user {os.geteuid()}"
    elif stat.S_IMODE(found.st_mode) & 0o077:
        problem = f"has mode {stat.S_IMODE(found.st_mode):04o}, expected 0700"
    if problem:
        raise ConfigurationError(
            f"the folder of the control sockets {problem}: others could speak for the agents. Remove it", path=folder
        )


def read_private(path: Path, words: str) -> str:
    """Read a secret, without white space around it, from a file that only its owner can read.

    Errors call it by `words`.

    Raises:
        ConfigurationError: if the file is missing, or others may read it.
    """
    try:
        others = path.stat().st_mode & 0o077
        found = path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot read the {words}: {error}", path=path) from error
    if others:
        raise ConfigurationError(f"other accounts may read the {words}; run chmod 600", path=path)
    return found


def write_private(path: Path, text: str) -> None:
    """Write a text that only its owner can read, completely or not at all."""
    write_whole(path, text.encode(), private=True)
