"""Tokens with which those who were invited make their own XMPP account: pre-authenticated registration (XEP-0445).

A token is drawn for one name, travels in the invitation only, and is good for one registration until its end. Market
and server keep its digest. Servers that somebody else keeps have tokens of their own, which come as a URI (XEP-0401).
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
"""Random bytes of a token: nobody guesses it, however long he tries."""

TOKEN_CHARACTERS_MAX: Final = 256
"""Longest token that a server looks at, or that is taken from a URI."""


@dataclass(frozen=True, slots=True)
class AccountToken:
    """What a server knows of a token.

    Attributes:
        digest: see `token_digest`.
        ends_at: until when it may be used; the account that was made with it stays.
    """

    digest: str
    ends_at: Instant


@dataclass(frozen=True, slots=True)
class AccountInvitation:
    """What a server's owner gives to somebody who is to have an account there.

    Attributes:
        domain: of the server.
        name: local name of the account; empty where that is left open.
        token: lets make it.
    """

    domain: str
    name: str
    token: str


def draw_token() -> str:
    """A new token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def token_digest(token: str) -> str:
    """SHA-256 of a token, in hexadecimal; it is random and long, so that its digest tells nothing of it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def read_account_invitation(uri: str) -> AccountInvitation:
    """Read the URI with which a server's owner invites to register (XEP-0445, 2; RFC 5122 and XEP-0147).

    Args:
        uri: `xmpp:NAME@DOMAIN?register;preauth=TOKEN`, the same without a name, or the invitation of a contact at the
            server (`xmpp:CONTACT@DOMAIN?roster;preauth=TOKEN;ibr=y`), whose token also lets register there.

    Raises:
        ConfigurationError: if it is none.
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
