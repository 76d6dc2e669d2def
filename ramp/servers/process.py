"""A local XMPP server as a child process: the base of the embedded server and Prosody.

A server ends with its launcher, even if that is killed with -9. Two servers never share one state directory.
"""

from __future__ import annotations

import abc
import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Self

from ramp.errors import ConfigurationError, TransportError
from ramp.runtime.joining.account_tokens import Account
from ramp.servers import LOOPBACK
from ramp.servers.certificate import ServerCertificate, ensure_server_certificate
from ramp.servers.parent import tied
from ramp.xmpp.address import account_problem

READY_LIMIT_S = 120.0
"""Timeout of a server's start in seconds; a server that ends earlier is reported at once."""

STOP_LIMIT_S = 5.0
"""Timeout of a server's stop in seconds; then it is killed."""

PORT_ATTEMPTS = 5
"""Maximum number of tried ports; another program may take a free one before the server starts."""

_POLL_S = 0.02


SILENCE: Final = "does not answer in time"
"""Problem of a server that sends no answer."""


def probe_problem(host: str, port: int, domain: str, limit_s: float = 2.0) -> str:
    """Check that an XMPP server answers: open a stream and wait for its features (RFC 6120, 4.3).

    Args:
        host: address to connect to.
        port: TCP port.
        domain: XMPP domain of the stream.
        limit_s: timeout in seconds.

    Returns:
        The problem; empty if the server answers.
    """
    header = (
        f"<stream:stream to='{domain}' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
        "version='1.0'>"
    )
    end = time.monotonic() + limit_s
    received = b""
    try:
        with socket.create_connection((host, port), timeout=limit_s) as line:
            line.sendall(header.encode("utf-8"))
            while b"features" not in received:
                line.settimeout(max(0.01, end - time.monotonic()))
                chunk = line.recv(4096)
                if not chunk:
                    return "is not an XMPP server of this market: it closes the connection"
                received += chunk
            line.sendall(b"</stream:stream>")
    except TimeoutError:
        return SILENCE
    except OSError as error:
        return f"cannot be reached: {error.strerror or error}"
    return ""


def free_port() -> int:
    """Return a TCP port on loopback that is free now."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        return int(listener.getsockname()[1])


def check_accounts(accounts: Mapping[str, Account], domain: str, path: Path | None = None) -> None:
    """Refuse accounts with an invalid name or an empty password.

    Raises:
        ConfigurationError: a name is not canonical, or a password is empty.
    """
    for name, account in accounts.items():
        problem = account_problem(name, domain)
        if problem:
            raise ConfigurationError(
                f"invalid account name {name!a} at {domain}: {problem}; use a name in its prepared form, for example "
                "lower-case letters, digits, dots, hyphens and underscores",
                path=path,
                key="name",
            )
        if account == "":
            raise ConfigurationError(f"the account {name} has no password; give one", path=path, key="passwords")


class ServerProcess(abc.ABC):
    """An XMPP server on loopback as a child process.

    It ends when the thread that started it ends, so start it from a thread that lives long enough.

    Args:
        state_dir: directory of accounts, certificate, configuration and log; one for each server.
        domain: XMPP domain of the agents.
        port: TCP port for clients; None takes any free one and keeps it over restarts.

    Attributes:
        accounts: by local name, sent to the server at each start.
    """

    kind: str
    _stdin: int = subprocess.DEVNULL

    def __init__(self, state_dir: Path, *, domain: str = "localhost", port: int | None = None) -> None:
        self.domain = domain
        self.host = LOOPBACK
        self.state_dir = state_dir.absolute()
        self._port = port or 0
        self._process: subprocess.Popen[bytes] | None = None
        self._certificate: ServerCertificate | None = None
        self.accounts: dict[str, Account] = {}

    # -- hooks for kinds of servers ------------------------------------------------------------------------------

    @abc.abstractmethod
    def _command(self, certificate: ServerCertificate) -> list[str]:
        """Write the server's configuration and return the command that runs it in the foreground."""

    @abc.abstractmethod
    def _give(self, accounts: Mapping[str, Account]) -> None:
        """Give accounts to the running server."""

    # -- interface -----------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """TCP port for clients; 0 before the first start if any free port may be used."""
        return self._port

    @property
    def ca_file(self) -> Path:
        """PEM file of the authority that clients must trust."""
        return self.certificate.ca_file

    @property
    def certificate(self) -> ServerCertificate:
        """The server's certificate, created at first use."""
        if self._certificate is None:
            self._certificate = ensure_server_certificate(self.state_dir / "tls", self.domain)
        return self._certificate

    @property
    def log_file(self) -> Path:
        return self.state_dir / f"{self.kind}.log"

    @property
    def pid(self) -> int | None:
        """The process id of the running server, or None."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def ensure_accounts(self, accounts: Mapping[str, Account]) -> None:
        """Create accounts, allow their registration or close them; now if the server runs, and at each later start.

        Args:
            accounts: by local name. An existing account gets the given password. With a token its owner may register
                the account in band (XEP-0445); the latest token of a name is the only valid one, and an account made
                without it is closed.

        Raises:
            ConfigurationError: a name is not canonical, or a password is empty.
            TransportError: the running server refuses the accounts.
        """
        check_accounts(accounts, self.domain)
        self.accounts.update(accounts)
        if self.pid is not None:
            self._give(accounts)

    def start(self) -> None:
        """Start the server and wait until it answers; do nothing if it already runs.

        Raises:
            TransportError: the server does not answer, its port is in use, or another server uses the state directory.
        """
        if self.pid is not None:
            return
        choose = self._port == 0
        for attempt in range(PORT_ATTEMPTS):
            if choose:
                self._port = free_port()
            self._launch()
            if self._wait_ready():
                return
            status = self._process.poll() if self._process is not None else None
            self.kill()
            if status is None or not choose or attempt + 1 == PORT_ATTEMPTS:
                what = f"ended with status {status}" if status is not None else f"no answer within {READY_LIMIT_S:g} s"
                raise TransportError(f"{self.kind}: {what}; end of its log {self.log_file}: {self._log_tail()}")

    def stop(self) -> None:
        """Stop the server with SIGTERM; kill it after `STOP_LIMIT_S`."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_LIMIT_S)
        self.kill()

    def kill(self) -> None:
        """Kill the server and its child processes (SIGKILL)."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- starting ------------------------------------------------------------------------------------------------

    def _launch(self) -> None:
        """Start the process, which may not answer yet."""
        self.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        command = self._command(self.certificate)
        with self._locked_state() as lock, self.log_file.open("ab") as log:
            if self._listening():  # checked under the lock, because an earlier server may still be ending
                raise TransportError(f"{self.kind}: port {self._port} of {self.host} is in use; choose another one")
            self._process = subprocess.Popen(
                tied(command),
                stdin=self._stdin,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches only the launcher, which stops the agents first
                pass_fds=(lock,),  # the server holds the lock as long as it lives
            )
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(self._process.pid).encode(), 0)

    @contextlib.contextmanager
    def _locked_state(self) -> Iterator[int]:
        """Wait for the lock of the state directory; a server whose launcher was killed needs a moment to end."""
        descriptor = os.open(self.state_dir / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            end = time.monotonic() + STOP_LIMIT_S
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        pid = os.pread(descriptor, 20, 0).decode() or "unknown"
                        raise TransportError(
                            f"{self.kind}: another server (process {pid}) uses {self.state_dir}; "
                            "stop it or choose another state directory"
                        ) from None
                    time.sleep(_POLL_S)
            yield descriptor
        finally:
            os.close(descriptor)

    def _wait_ready(self) -> bool:
        end = time.monotonic() + READY_LIMIT_S
        while self._process is not None and self._process.poll() is None and time.monotonic() < end:
            if self._listening() and not probe_problem(self.host, self._port, self.domain):
                return True
            time.sleep(_POLL_S)
        return False

    def _listening(self) -> bool:
        try:
            socket.create_connection((self.host, self._port), timeout=1.0).close()
        except OSError:
            return False
        return True

    def _log_tail(self, length: int = 300) -> str:
        try:
            return " ".join(self.log_file.read_text(errors="replace")[-length:].split()) or "(empty)"
        except OSError:
            return "(none)"
