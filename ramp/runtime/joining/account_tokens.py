"""Tokens for registering the XMPP account of an invited party: pre-authenticated registration (XEP-0445).

A token belongs to one name, travels only in the invitation, and allows one registration until its end. Market and
server keep its digest. Servers of other owners have tokens of their own, in the form of a URI (XEP-0401).
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from ramp.errors import ConfigurationError
from ramp.model.instant import Instant

TOKEN_BYTES: Final = 24
"""Random bytes of a token, too many to guess."""

TOKEN_CHARACTERS_MAX: Final = 256
"""Maximum length of a token for a server or in a URI."""


@dataclass(frozen=True, slots=True)
class AccountToken:
    """A token as its server keeps it.

    Attributes:
        digest: as `token_digest` returns it.
        ends_at: end of validity; an account made with the token stays.
    """

    digest: str
    ends_at: Instant


Account = str | AccountToken | None
"""An account of a server: its password, the only valid token for registering it, or None if it is closed."""


@dataclass(frozen=True, slots=True)
class AccountInvitation:
    """An invitation to register at a server, from its owner; without a name if the invited person chooses it."""

    domain: str
    name: str
    token: str


def draw_token() -> str:
    """Return a new token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def token_digest(token: str) -> str:
    """Return the SHA-256 of a token in hexadecimal; tokens are too long and random to be guessed from it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def read_account_invitation(uri: str) -> AccountInvitation:
    """Read the URI of an invitation to register (XEP-0445, 2; RFC 5122 and XEP-0147).

    Args:
        uri: `xmpp:NAME@DOMAIN?register;preauth=TOKEN`, with or without the name, or the invitation of a contact at the
            server (`xmpp:CONTACT@DOMAIN?roster;preauth=TOKEN;ibr=y`), whose token also allows registration.

    Raises:
        ConfigurationError: the text is not such a URI.
    """
    scheme, _, rest = uri.strip().partition(":")
    address, _, query = rest.partition("?")
    action, *parts = query.split(";")
    values = {key: unquote(value) for key, _, value in (part.partition("=") for part in parts)}
    name, _, domain = (unquote(part) for part in address.rpartition("@"))
    token = values.get("preauth", "")
    registers = action == "register" or (action == "roster" and values.get("ibr") == "y")
    if scheme.lower() != "xmpp" or not domain or "/" in address or not registers:
        raise ConfigurationError(
            f"invalid account invitation: got {uri!r}, expected xmpp:NAME@DOMAIN?register;preauth=TOKEN"
        )
    if not 0 < len(token) <= TOKEN_CHARACTERS_MAX:
        raise ConfigurationError(f"no token in {uri!r}: expected preauth= with 1 to {TOKEN_CHARACTERS_MAX} characters")
    return AccountInvitation(domain, name if action == "register" else "", token)
