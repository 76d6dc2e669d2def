"""A local XMPP server as a child process: the interface that the embedded server and Prosody share.

A server belongs to its launcher: it dies with it, even of kill -9, and two never share one state directory.
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

from ramp.errors import TransportError
from ramp.runtime.joining.account_tokens import AccountToken
from ramp.servers.accounts import check_accounts
from ramp.servers.certificate import ServerCertificate, ensure_server_certificate
from ramp.servers.parent import tied

LOOPBACK = "127.0.0.1"
"""The only address that local servers listen on."""

READY_LIMIT_S = 120.0
"""How long a server may take to answer after its start, in seconds; one that ends instead is told of at once."""

STOP_LIMIT_S = 5.0
"""How long a server may take to stop before it is killed, in seconds."""

PORT_ATTEMPTS = 5
"""Ports tried where any free one will do: another program may take one between our look and the server's start."""

_POLL_S = 0.02


SILENCE: Final = "does not answer in time"
"""What a look at a server finds where nothing comes back."""


def probe(host: str, port: int, domain: str, limit_s: float = 2.0) -> bool:
    """Whether an XMPP server answers there; see `probe_problem`."""
    return not probe_problem(host, port, domain, limit_s)


def probe_problem(host: str, port: int, domain: str, limit_s: float = 2.0) -> str:
    """Why no XMPP server answers there: opens a stream and waits for its features (RFC 6120, 4.3).

    Args:
        host: address to connect to.
        port: TCP port.
        domain: XMPP domain to ask for.
        limit_s: how long to wait, in seconds.

    Returns:
        What is wrong, or the empty string.
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
                    return "is no XMPP server of this market: it hangs up"
                received += chunk
            line.sendall(b"</stream:stream>")
    except TimeoutError:
        return SILENCE
    except OSError as error:
        return f"cannot be reached: {error.strerror or error}"
    return ""


def free_port() -> int:
    """A TCP port on loopback that nobody listens on right now."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        return int(listener.getsockname()[1])


class ServerProcess(abc.ABC):
    """An XMPP server on loopback, run as a child process of this one.

    It ends when the thread that started it ends, so start it from one that lives as long as it is needed.

    Args:
        state_dir: where the server keeps accounts, certificate, configuration and log; one server a directory.
        domain: XMPP domain of the agents.
        port: TCP port for clients; None takes any free one and keeps it over restarts.

    Attributes:
        accounts: passwords of the accounts that it is given at every start, by local name; see `ensure_accounts`.
        tokens: what accounts may be registered with, given at every start as well; see `ensure_tokens`.
    """

    kind: str

    def __init__(self, state_dir: Path, *, domain: str = "localhost", port: int | None = None) -> None:
        self.domain = domain
        self.host = LOOPBACK
        self.state_dir = state_dir.absolute()
        self._any_port = port is None
        self._port = port or 0
        self._process: subprocess.Popen[bytes] | None = None
        self._certificate: ServerCertificate | None = None
        self.accounts: dict[str, str] = {}
        self.tokens: dict[str, AccountToken | None] = {}

    # -- what the kinds of server fill in ------------------------------------------------------------------------

    @abc.abstractmethod
    def _command(self, certificate: ServerCertificate) -> list[str]:
        """Write what configuration the server needs and return the command that runs it in the foreground."""

    @abc.abstractmethod
    def _give_accounts(self, accounts: Mapping[str, str]) -> None:
        """Make accounts on the running server, or give those that exist the password stated.

        Raises:
            TransportError: the server does not take them.
        """

    @abc.abstractmethod
    def _give_tokens(self, tokens: Mapping[str, AccountToken | None]) -> None:
        """Let accounts be registered on the running server with these tokens; None closes the account.

        Raises:
            TransportError: the server does not take them.
        """

    def _environment(self) -> Mapping[str, str]:
        return os.environ

    def _input(self) -> int:
        """What the server's standard input is: a descriptor, or one of subprocess's constants."""
        return subprocess.DEVNULL

    def _launched(self) -> None:  # noqa: B027 (few kinds of server want to know)
        """The process has been started; it may not answer yet."""

    # -- what users see ------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """TCP port for clients; 0 before the first start where any free one will do."""
        return self._port

    @property
    def ca_file(self) -> Path:
        """PEM file of the authority that clients must trust."""
        return self.certificate.ca_file

    @property
    def certificate(self) -> ServerCertificate:
        """The server's certificate; made at first use."""
        if self._certificate is None:
            self._certificate = ensure_server_certificate(self.state_dir / "tls", self.domain)
        return self._certificate

    @property
    def log_file(self) -> Path:
        """What the server writes."""
        return self.state_dir / f"{self.kind}.log"

    @property
    def pid(self) -> int | None:
        """Process id while the server runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def ensure_accounts(self, accounts: Mapping[str, str]) -> None:
        """Let the server have accounts, now if it runs, and again at every later start: it may lose them.

        Args:
            accounts: passwords by local name; an account that exists gets this password.

        Raises:
            ConfigurationError: for a name that is not canonical, or an empty password.
            TransportError: the running server does not take them.
        """
        check_accounts(accounts, self.domain)
        for name in accounts:
            self.tokens.pop(name, None)
        self.accounts.update(accounts)
        if self.pid is not None:
            self._give_accounts(accounts)

    def ensure_tokens(self, tokens: Mapping[str, AccountToken | None]) -> None:
        """Let accounts be registered in band by whoever has their tokens, now and after every later start (XEP-0445).

        Args:
            tokens: by local name; of a name only the last one given holds, and an account that was made otherwise is
                closed. None: there is to be no such account.

        Raises:
            ConfigurationError: for a name that is not canonical.
            TransportError: the running server does not take them.
        """
        check_accounts(dict.fromkeys(tokens, "made by its owner"), self.domain)
        for name in tokens:
            self.accounts.pop(name, None)
        self.tokens.update(tokens)
        if self.pid is not None:
            self._give_tokens(tokens)

    def start(self) -> None:
        """Start the server and wait until it answers; does nothing where it runs already.

        Raises:
            TransportError: it does not come up, its port is taken, or another server uses the state directory.
        """
        if self.pid is not None:
            return
        choose = self._any_port and self._port == 0
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
                raise TransportError(f"{self.kind}: {what}; its log {self.log_file} ends: {self._log_tail()}")

    def stop(self) -> None:
        """End the server in good order; kills it where it does not within `STOP_LIMIT_S`."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_LIMIT_S)
        self.kill()

    def kill(self) -> None:
        """End the server at once (SIGKILL), and whatever it has started."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def restart(self) -> None:
        """End the server in good order and start it again on the same port, with the same accounts."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- starting ------------------------------------------------------------------------------------------------

    def _launch(self) -> None:
        self.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        command = self._command(self.certificate)
        with self._locked_state() as lock, self.log_file.open("ab") as log:
            if self._listening():  # looked at under the lock: a server that was here before may just be ending
                raise TransportError(f"{self.kind}: port {self._port} of {self.host} is taken; give another one")
            self._process = subprocess.Popen(
                tied(command),
                stdin=self._input(),
                stdout=log,
                stderr=log,
                cwd=self.state_dir,
                env=dict(self._environment()),
                start_new_session=True,  # Ctrl-C reaches the launcher only, which stops the agents first
                pass_fds=(lock,),  # the server holds the lock as long as it lives
            )
        self._launched()
        (self.state_dir / "server.pid").write_text(f"{self._process.pid}\n")

    @contextlib.contextmanager
    def _locked_state(self) -> Iterator[int]:
        """The state directory's lock, waited for: a server whose launcher was killed needs a moment to end."""
        descriptor = os.open(self.state_dir / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            end = time.monotonic() + STOP_LIMIT_S
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise TransportError(
                            f"{self.kind}: another server (process {self._recorded_pid()}) uses {self.state_dir}; "
                            "stop it or give another state directory"
                        ) from None
                    time.sleep(_POLL_S)
            yield descriptor
        finally:
            os.close(descriptor)

    def _recorded_pid(self) -> str:
        try:
            return (self.state_dir / "server.pid").read_text().strip()
        except OSError:
            return "unknown"

    def _wait_ready(self) -> bool:
        end = time.monotonic() + READY_LIMIT_S
        while self._process is not None and self._process.poll() is None and time.monotonic() < end:
            if self._listening() and probe(self.host, self._port, self.domain):
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
