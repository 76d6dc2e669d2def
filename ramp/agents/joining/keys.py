"""Keys that a market or a joined site needs before its start."""

from __future__ import annotations

from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from ramp.errors import ConfigurationError
from ramp.model.instant import DAY, Duration, Instant
from ramp.rfql.signing import certificates
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.joining.membership import kept_key, not_enrolled, server_certificate_file, server_key_file
from ramp.runtime.keys import issuing
from ramp.runtime.keys.store import CERTIFICATE_LIFETIME, KeyStore
from ramp.runtime.state_folder import StateFolder

RENEW_BEFORE: Final[Duration] = 30 * DAY
"""A server's certificate with less validity left is replaced when the market starts."""


def prepare_keys(config: SwarmConfig, state: StateFolder, now: Instant) -> None:
    """Create the missing keys of a market, or check that a site has all its keys.

    Raises:
        ConfigurationError: a key or certificate is unusable, or a party of a site is not enrolled.
    """
    keys = KeyStore(state.keys)
    if config.joining.site is not None:
        _check_enrolled(config, state, keys)
        return
    keys.create_ca(now)
    for name, role in config.roles().items():
        keys.issue(config.address(name), role, now)
    if config.joining.federation is not None:
        _certify_server(config.domain, state, keys, now)


def _check_enrolled(config: SwarmConfig, state: StateFolder, keys: KeyStore) -> None:
    missing = not_enrolled(config, state)
    if missing:
        raise ConfigurationError(
            f"not enrolled: {', '.join(missing)}; run `ramp join INVITATION` for each",
            path=config.path,
        )
    for name in config.roles():
        keys.identity(config.address(name))
    if config.joining.federation is None:
        return
    for path in (server_key_file(state, config.domain), server_certificate_file(state, config.domain)):
        if not path.exists():
            raise ConfigurationError(
                f"the server of {config.domain} has no certificate; join with an invitation that was made with "
                "`ramp invite --server`",
                path=path,
            )


def _certify_server(domain: str, state: StateFolder, keys: KeyStore, now: Instant) -> None:
    key = kept_key(server_key_file(state, domain))
    path = server_certificate_file(state, domain)
    if path.exists():
        found = x509.load_pem_x509_certificate(path.read_bytes())
        ours = certificates.public_key_bytes(found.public_key()) == certificates.public_key_bytes(key.public_key())
        if (
            ours
            and certificates.valid_until(found) - now > RENEW_BEFORE
            and found.issuer in {ca.subject for ca in keys.ca_certificates()}
        ):
            return
    made = issuing.certify_server(domain, key.public_key(), keys.issuer(), now, CERTIFICATE_LIFETIME)
    write_whole(path, made.public_bytes(serialization.Encoding.PEM), private=False)
