"""Prosody for one of several sites; it connects only to the servers of the other sites.

Each server presents a certificate of the market's authority for its own domain and checks the other's (SASL EXTERNAL,
RFC 6120, 6.3; XEP-0178). Dialback is off, so a server without such a certificate is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ramp.errors import TransportError
from ramp.runtime.joining.configuration import FederationConfig, address_and_port
from ramp.servers.certificate import ServerCertificate
from ramp.servers.prosody import ProsodyServer


class FederatedProsody(ProsodyServer):
    """Prosody with federation as a child process.

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
        found = {domain: address_and_port(address) for domain, address in self._config.peers.items()}
        peers = "".join(
            f"[{json.dumps(domain)}] = {{ {json.dumps(place[0])}, {place[1]} }}; "
            for domain, place in found.items()
            if place is not None
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
