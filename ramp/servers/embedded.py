"""The embedded XMPP server, which a market uses if its configuration names no other.

It runs in a separate process (`ramp.servers.embedded_process`), listens on loopback only, and serves one machine. Its
launcher sends it accounts and tokens for registering further ones over its standard input (`ramp.servers.accounts`).
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Mapping

from ramp.errors import TransportError
from ramp.runtime.joining.account_tokens import Account
from ramp.servers.accounts import DONE, accounts_text
from ramp.servers.certificate import ServerCertificate
from ramp.servers.process import READY_LIMIT_S, ServerProcess


class EmbeddedServer(ServerProcess):
    """The embedded server as a child process; `state_dir` is the directory of registered accounts too."""

    kind = "embedded"
    _channel: socket.socket
    _one_at_a_time: threading.Lock

    def _launch(self) -> None:
        self._channel, channel_of_server = socket.socketpair()
        self._channel.settimeout(READY_LIMIT_S)
        self._one_at_a_time = threading.Lock()
        with channel_of_server:
            self._stdin = channel_of_server.fileno()
            super()._launch()
        with contextlib.suppress(TransportError):  # it ends the server, whose log gives the reason
            self._give(self.accounts)

    def _give(self, accounts: Mapping[str, Account]) -> None:
        try:
            with self._one_at_a_time:
                self._channel.sendall(accounts_text(accounts).encode() + b"\n")
                answer = b""
                while not answer.endswith(b"\n") and (read := self._channel.recv(4096)):
                    answer += read
        except OSError as error:
            self._channel.close()  # ends the server: a late answer would be taken for that to another question
            answer = str(error).encode()
        if answer != DONE:
            problem = answer.decode(errors="replace").strip() or "the server has ended"
            raise TransportError(f"{self.kind}: cannot create or close the accounts {', '.join(accounts)}: {problem}")

    def _command(self, certificate: ServerCertificate) -> list[str]:
        command = [sys.executable, "-m", "ramp.servers.embedded_process", "--host", self.domain]
        command += ["--port", str(self.port), "--state", str(self.state_dir)]
        return [*command, "--certificates", str(certificate.certificate_file.parent)]
