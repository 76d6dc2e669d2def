"""The embedded XMPP server, which a market uses if its configuration names no other.

It is pyjabber, SPADE's own server, with its defects fixed (`ramp.servers.embedded_process`). It runs in a separate
process, listens on loopback only, and serves one machine. Its launcher sends it accounts and tokens for registering
further ones over its standard input (`ramp.servers.accounts`).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import ramp
from ramp.errors import RampError, TransportError
from ramp.runtime.joining.account_tokens import AccountToken
from ramp.servers.accounts import AccountGiver, AccountLine, Accounts
from ramp.servers.certificate import ServerCertificate, ensure_server_certificate
from ramp.servers.process import READY_LIMIT_S, ServerProcess
from ramp.servers.registered_accounts import RegisteredAccounts


class EmbeddedServer(ServerProcess):
    """The embedded server as a child process.

    Args:
        state_dir: directory of rosters, certificate and log.
        domain: XMPP domain of the agents.
        port: TCP port for clients; None takes any free one and keeps it over restarts.
    """

    kind = "embedded"
    _giver: AccountGiver | None = None

    def _input(self) -> int:
        if self._giver is not None:
            self._giver.close()
        self._giver = AccountGiver(READY_LIMIT_S)
        return self._giver.child.fileno()

    def _launched(self) -> None:
        assert self._giver is not None
        self._giver.child.close()
        # a problem here ends the server, and its log gives the reason
        self._giver.give(self.accounts, self.tokens)

    def _give(self, accounts: Mapping[str, str], tokens: Mapping[str, AccountToken | None]) -> None:
        assert self._giver is not None
        problem = self._giver.give(accounts, tokens)
        if problem:
            names = ", ".join((*accounts, *tokens))
            raise TransportError(f"{self.kind}: cannot create or close the accounts {names}: {problem}")

    def _command(self, certificate: ServerCertificate) -> list[str]:
        command = [sys.executable, "-m", "ramp.servers.embedded", "--host", self.domain]
        return [*command, "--port", str(self.port), "--state", str(self.state_dir)]

    def _environment(self) -> Mapping[str, str]:
        # the child runs in the state directory and must import this same package, installed or not
        here = str(Path(ramp.__file__).parent.parent)
        path = os.pathsep.join(part for part in (here, os.environ.get("PYTHONPATH", "")) if part)
        return {**os.environ, "PYTHONPATH": path}


def main(arguments: list[str] | None = None) -> int:
    """Run the server in this process until SIGTERM or SIGINT, with the accounts from standard input.

    Returns:
        Exit status: 0 stopped, 1 the port is in use, 2 invalid arguments or accounts, or a wrong version of pyjabber.
    """
    parser = argparse.ArgumentParser(prog="ramp.servers.embedded", description="Run the embedded XMPP server.")
    parser.add_argument("--host", default="localhost", help="XMPP domain of the agents (default: localhost)")
    parser.add_argument("--port", type=int, required=True, help="TCP port for clients, on 127.0.0.1")
    parser.add_argument("--state", type=Path, required=True, help="directory of rosters, accounts and certificate")
    options = parser.parse_args(arguments)
    from ramp.servers.embedded_process import serve  # imports SQLAlchemy, which is slow

    state: Path = options.state.absolute()
    try:
        certificate = ensure_server_certificate(state / "tls", options.host)
        accounts = Accounts(options.host, RegisteredAccounts(state / "registered.json"))
        line = AccountLine(accounts)
        serve(options.host, options.port, state, certificate, accounts, line)
    except RampError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"cannot listen on port {options.port}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # threads and tasks of open connections must not delay the exit, see `serve`
