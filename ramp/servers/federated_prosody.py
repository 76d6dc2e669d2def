"""Prosody for one site of several: it speaks with the servers of the other sites, and with nobody else's.

Each side shows a certificate of the market's authority for its own domain and checks the other's (SASL EXTERNAL, RFC
6120 section 6.3; XEP-0178). There is no dialback, so a server without such a certificate is turned away.
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
    """Prosody as a child process, federated.

    Args:
        state_dir: where accounts, keys, configuration and log are kept; `tls/DOMAIN_key.pem` and `tls/DOMAIN_cert.pem`
            must be there.
        domain: XMPP domain of the site.
        federation: where it listens, and where its peers are.
        ca_file: PEM of the market's authority, whom it trusts.
    """

    def __init__(self, state_dir: Path, domain: str, federation: FederationConfig, ca_file: Path) -> None:
        super().__init__(state_dir, domain=domain, port=federation.client_port)
        self.host = federation.listen
        self._config = federation
        self._authority = ca_file

    @property
    def certificate(self) -> ServerCertificate:
        """The server's certificate, which the market's authority has issued."""
        folder = self.state_dir / "tls"
        found = ServerCertificate(
            self._authority, folder / f"{self.domain}_cert.pem", folder / f"{self.domain}_key.pem"
        )
        for path in (found.ca_file, found.certificate_file, found.key_file):
            if not path.is_file():
                raise TransportError(f"the server of {self.domain} has no certificate: {path} is missing")
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
