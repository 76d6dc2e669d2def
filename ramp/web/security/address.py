"""The address of the pages and the host names that browsers may use."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ramp.errors import ConfigurationError

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
"""Names of this computer for its own browsers."""

PORT_DEFAULT: Final = 8765
"""A port above 1023 that common services do not use."""


@dataclass(frozen=True, slots=True)
class ServedAddress:
    """The address of the pages; `served_address` makes one.

    Attributes:
        host: name or address that is bound.
        port: TCP port.
        names: hosts, with IPv6 addresses in brackets, that a request may name.
        certificate: file of the TLS certificate with its chain, None for none.
        key: file of its private key.
    """

    host: str
    port: int
    names: tuple[str, ...]
    certificate: Path | None = None
    key: Path | None = None

    @property
    def is_secure(self) -> bool:
        return self.certificate is not None

    @property
    def url(self) -> str:
        return f"{'https' if self.is_secure else 'http'}://{self.names[0]}:{self.port}"

    @property
    def hosts(self) -> frozenset[str]:
        """Accepted values of the header `Host` (RFC 9110, 7.2), which excludes DNS rebinding."""
        usual = 443 if self.is_secure else 80
        short = self.names if self.port == usual else ()
        return frozenset((*short, *(f"{name}:{self.port}" for name in self.names)))

    @property
    def origins(self) -> frozenset[str]:
        """Values of the header `Origin` (RFC 6454) of our own pages."""
        scheme = "https" if self.is_secure else "http"
        return frozenset(f"{scheme}://{host}" for host in self.hosts)

    @property
    def cookie(self) -> str:
        """Name of the session's cookie; it has the port, since cookies ignore ports (RFC 6265, 8.5)."""
        return f"__Host-ramp-{self.port}" if self.is_secure else f"ramp-{self.port}"


def served_address(
    host: str, port: int, *, name: str | None = None, certificate: Path | None = None, key: Path | None = None
) -> ServedAddress:
    """Check the address for the pages.

    Args:
        host: address to bind: loopback, or with a certificate any address of this computer.
        port: TCP port.
        name: host name in browsers, if it is not `host`.
        certificate: PEM file of the TLS certificate with its chain.
        key: PEM file of its private key.

    Raises:
        ConfigurationError: if pages would leave this computer without TLS, or a file is invalid.
    """
    if (certificate is None) != (key is None):
        raise ConfigurationError("TLS needs both --tls-certificate and --tls-key")
    if certificate is not None and key is not None:
        _check_files(certificate, key)
    if not 0 < port < 65_536:
        raise ConfigurationError(f"a TCP port is 1 to 65535, got {port}", key="--port")
    bound = _numeric(host)
    loopback = host == "localhost" or (bound is not None and bound.is_loopback)
    if not loopback and certificate is None:
        raise ConfigurationError(
            f"other computers reach {host}, which needs TLS: give --tls-certificate and --tls-key, or use 127.0.0.1",
            key="--host",
        )
    if name is None and bound is not None and bound.is_unspecified:
        raise ConfigurationError(f"{host} means all addresses; give the name for browsers with --name")
    bracketed = f"[{host}]" if ":" in host else host
    own = (name,) if name is not None else ()
    names = (*own, *LOOPBACK_NAMES) if loopback else (*own, bracketed)
    if loopback and name is None and bracketed in LOOPBACK_NAMES:
        names = (bracketed, *(each for each in LOOPBACK_NAMES if each != bracketed))
    return ServedAddress(host, port, names, certificate, key)


def _numeric(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    return None


def _check_files(certificate: Path, key: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"not a PEM certificate and its key: {error}", path=f"{certificate}, {key}", key="--tls-certificate"
        ) from error


def bound_socket(address: ServedAddress) -> socket.socket:
    """Return a socket that listens at an address.

    Raises:
        ConfigurationError: if it cannot listen there, for example because the port is in use.
    """
    try:
        family, *_, where = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigurationError(f"not an address of this computer: {error}", key=address.host) from error
    try:
        return socket.create_server(where, family=family, backlog=128)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {address.host}:{address.port}: {error.strerror}; choose another --port", key="--port"
        ) from error
