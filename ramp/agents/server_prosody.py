"""Prosody from Debian's packages as a local server: for tests, and for users who want a server that resumes sessions.

Configured for a market on one machine: loopback only, encryption demanded, accounts made by the agents themselves,
stream management on, and none of the rate limits and delays of Debian's default configuration (with those a call for
proposals to 20 resources takes 8 s instead of 40 ms).
"""

from __future__ import annotations

import os
import shutil

from ramp.agents.certificate import ServerCertificate
from ramp.agents.server_process import ServerProcess
from ramp.errors import TransportError

STANZA_MAX_BYTES = 262_144
"""Longest stanza that the server takes from a client, in bytes (Prosody's own default)."""

RESUME_WITHIN_S = 120
"""How long a lost session can be resumed, in seconds."""

_CONFIGURATION = """-- written by RAMP; changes are lost at the next start
{privileged}pidfile = "{state}/prosody.pid"
data_path = "{state}/data"
certificates = "{state}/tls"
modules_enabled = {{ "roster"; "saslauth"; "tls"; "disco"; "ping"; "register"; "smacks" }}
modules_disabled = {{ "s2s" }}
interfaces = {{ "{host}" }}
c2s_ports = {{ {port} }}
c2s_direct_tls_ports = {{ }}
s2s_ports = {{ }}
http_ports = {{ }}
https_ports = {{ }}
-- anybody on this machine may make an account; nobody else reaches the port
allow_registration = true
authentication = "internal_hashed"
storage = "internal"
c2s_require_encryption = true
c2s_stanza_size_limit = {stanza_max}
smacks_max_unacked_stanzas = 25
smacks_hibernation_time = {resume_s}
-- Nagle's algorithm would add 40 ms to every message longer than a packet
network_settings = {{ nagle = false }}
log = {{ {{ levels = {{ min = "warn" }}; to = "console" }} }}
VirtualHost "{domain}"
  ssl = {{ key = "{key}"; certificate = "{certificate}" }}
"""


def prosody_executable() -> str | None:
    """Path of Prosody, None where it is not installed."""
    return shutil.which("prosody", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/bin", "/usr/local/bin")))


class ProsodyServer(ServerProcess):
    """Prosody as a child process.

    Args:
        state_dir: where accounts, certificate, configuration and log are kept.
        domain: XMPP domain of the agents.
        port: TCP port for clients; None takes any free one and keeps it over restarts.
    """

    kind = "prosody"

    def _command(self, certificate: ServerCertificate) -> list[str]:
        executable = prosody_executable()
        if executable is None:
            raise TransportError("Prosody is not installed; apt-get install prosody, or use the embedded server")
        (self.state_dir / "data").mkdir(exist_ok=True)
        configuration = self.state_dir / "prosody.cfg.lua"
        configuration.write_text(
            _CONFIGURATION.format(
                privileged="run_as_root = true\n" if os.geteuid() == 0 else "",
                state=self.state_dir,
                host=self.host,
                port=self.port,
                stanza_max=STANZA_MAX_BYTES,
                resume_s=RESUME_WITHIN_S,
                domain=self.domain,
                key=certificate.key_file,
                certificate=certificate.certificate_file,
            )
        )
        return [executable, "-F", "--config", str(configuration)]
