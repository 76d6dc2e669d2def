"""Prosody as a local server that resumes sessions, alone or as the server of one of several sites.

Its configuration is for a market on one machine: loopback only, encryption required, stream management on, and only
accounts that the launcher creates or allows by a token. It drops the rate limits and delays of Debian's default
configuration, with which a call for proposals to 20 resources takes 8 s instead of 40 ms.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ramp.errors import TransportError
from ramp.runtime.configuration.sites import FederationConfig, read_address
from ramp.runtime.joining.account_tokens import Account
from ramp.servers.accounts import accounts_text
from ramp.servers.certificate import ServerCertificate
from ramp.servers.process import ServerProcess, check_accounts

STANZA_MAX_BYTES = 262_144
"""Maximum stanza from a client in bytes (Prosody's default)."""

PLUGINS = Path(__file__).with_name("prosody_modules")
"""Folder of RAMP's Prosody modules."""

ACCOUNTS_LIMIT_S = 30.0
"""Timeout of prosodyctl in seconds, besides `ACCOUNT_LIMIT_S` for each account (Prosody derives a key)."""

ACCOUNT_LIMIT_S = 0.2

RESUME_WITHIN_S = 120
"""Time in which a lost session can be resumed, in seconds."""

_CONFIGURATION = """-- written by RAMP at each start; do not edit
{privileged}pidfile = "{state}/prosody.pid"
data_path = "{state}/data"
certificates = "{state}/tls"
modules_enabled = {{
  "roster"; "saslauth"; "tls"; "disco"; "ping"; "smacks"; "ramp_registration"{further_modules}
}}
modules_disabled = {{ {disabled_modules} }}
plugin_paths = {{ "{plugins}" }}
interfaces = {{ "{host}" }}
c2s_ports = {{ {port} }}
c2s_direct_tls_ports = {{ }}
http_ports = {{ }}
https_ports = {{ }}
-- mod_ramp_registration creates accounts, and registers accounts with tokens
allow_registration = false
authentication = "internal_hashed"
storage = "internal"
c2s_require_encryption = true
c2s_stanza_size_limit = {stanza_max}
smacks_max_unacked_stanzas = 25
smacks_hibernation_time = {resume_s}
-- most objects of a message live briefly; the incremental collector would take most of the time of a call to many
gc = {{ mode = "generational" }}
-- Nagle's algorithm would add 40 ms to every message longer than a packet
network_settings = {{ nagle = false }}
log = {{ {{ levels = {{ min = "warn" }}; to = "console" }} }}
{servers}
VirtualHost "{domain}"
  ssl = {{ key = "{key}"; certificate = "{certificate}"{authorities} }}
"""


def prosody_executable(program: str = "prosody") -> str | None:
    """Return the path of Prosody or another of its programs; None if it is not installed."""
    return shutil.which(program, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/bin", "/usr/local/bin")))


def store_accounts(configuration: Path, domain: str, accounts: Mapping[str, Account]) -> None:
    """Create, change and close accounts in Prosody's store; the server may be running.

    Args:
        configuration: configuration file of the server, with `PLUGINS` among its `plugin_paths`.
        domain: host of the accounts.
        accounts: by local name.

    Raises:
        ConfigurationError: a name is not canonical, or a password is empty.
        TransportError: Prosody cannot change the accounts.
    """
    check_accounts(accounts, domain)
    executable = prosody_executable("prosodyctl")
    if executable is None:
        raise TransportError("prosodyctl is not installed; install Debian's package prosody")
    try:
        done = subprocess.run(
            [executable, "--config", str(configuration), "mod_ramp_registration", domain],
            input=accounts_text(accounts),
            capture_output=True,
            text=True,
            check=False,
            timeout=ACCOUNTS_LIMIT_S + ACCOUNT_LIMIT_S * len(accounts),
            cwd=configuration.parent,
        )
    except subprocess.TimeoutExpired:
        raise TransportError(f"timeout: prosodyctl has not changed {len(accounts)} accounts") from None
    if done.returncode != 0:
        said = " ".join((done.stderr + done.stdout).split())[-500:]
        raise TransportError(f"prosodyctl cannot change the accounts: {said or f'exit status {done.returncode}'}")


class ProsodyServer(ServerProcess):
    """Prosody as a child process."""

    kind = "prosody"

    def _command(self, certificate: ServerCertificate) -> list[str]:
        executable = prosody_executable()
        if executable is None:
            raise TransportError("Prosody is not installed; run `apt-get install prosody`, or use the embedded server")
        (self.state_dir / "data").mkdir(exist_ok=True)
        self._configuration.write_text(
            _CONFIGURATION.format(
                privileged="run_as_root = true\n" if os.geteuid() == 0 else "",
                state=self.state_dir,
                plugins=PLUGINS,
                host=self.host,
                port=self.port,
                stanza_max=STANZA_MAX_BYTES,
                resume_s=RESUME_WITHIN_S,
                domain=self.domain,
                key=certificate.key_file,
                certificate=certificate.certificate_file,
                **self._federation(),
            )
        )
        self._give(self.accounts)
        return [executable, "-F", "--config", str(self._configuration)]

    def _federation(self) -> Mapping[str, str]:
        return {
            "further_modules": "",
            "disabled_modules": '"s2s"; "register"; "register_ibr"',
            "servers": "s2s_ports = { }",
            "authorities": "",
        }

    def _give(self, accounts: Mapping[str, Account]) -> None:
        if accounts:
            store_accounts(self._configuration, self.domain, accounts)

    @property
    def _configuration(self) -> Path:
        return self.state_dir / "prosody.cfg.lua"


class FederatedProsody(ProsodyServer):
    """Prosody with federation as a child process; it connects only to the servers of the other sites.

    Each server presents a certificate of the market's authority for its own domain and checks the other's (SASL
    EXTERNAL, RFC 6120, 6.3; XEP-0178). Dialback is off, so a server without such a certificate is refused.

    Args:
        state_dir: directory of accounts, keys, configuration and log; `tls/DOMAIN_key.pem` and `tls/DOMAIN_cert.pem`
            must exist.
        domain: XMPP domain of the site.
        federation: addresses of this server and its peers.
        ca_file: PEM file of the market's authority, which the server trusts.
    """

    def __init__(self, state_dir: Path, domain: str, federation: FederationConfig, ca_file: Path) -> None:
        super().__init__(state_dir, domain=domain, port=federation.client_port)
        self.host = federation.listen
        self._config = federation
        self._authority = ca_file

    @property
    def certificate(self) -> ServerCertificate:
        """The server's certificate from the market's authority."""
        folder = self.state_dir / "tls"
        found = ServerCertificate(
            self._authority, folder / f"{self.domain}_cert.pem", folder / f"{self.domain}_key.pem"
        )
        for path in (found.ca_file, found.certificate_file, found.key_file):
            if not path.is_file():
                raise TransportError(f"the server of {self.domain} has no certificate: the file {path} is missing")
        return found

    def _federation(self) -> Mapping[str, str]:
        found = {domain: read_address(address) for domain, address in self._config.peers.items()}
        peers = "".join(
            f"[{json.dumps(domain)}] = {{ {json.dumps(host)}, {port} }}; " for domain, (host, port) in found.items()
        )
        lines = (
            f"s2s_ports = {{ {self._config.server_port} }}",
            "s2s_direct_tls_ports = { }",
            "s2s_require_encryption = true",
            "s2s_secure_auth = true",
            f"ramp_peers = {{ {peers}}}",
        )
        return {
            "further_modules": '; "s2s"; "s2s_auth_certs"; "ramp_peers"',
            "disabled_modules": '"dialback"; "register"; "register_ibr"',
            "servers": "\n".join(lines),
            "authorities": f'; cafile = "{self._authority}"',
        }
