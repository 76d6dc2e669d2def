"""XMPP addresses in canonical form.

The canonical form of an address is the output of nodeprep, nameprep and resourceprep (RFC 6122, as slixmpp implements
them). RFC 7622 prepares addresses the same way: it maps width and case and prefers composed characters. RAMP refuses
every other spelling (`BANK`, full-width letters, a soft hyphen) and never corrects one. If one party prepared names and
another did not, they could take two different accounts for the same one.
"""

from __future__ import annotations

import re
from typing import Final

PART_MAX_BYTES: Final = 1023
"""Longest local part, domain or resource, in bytes of UTF-8 (RFC 7622, 3.1)."""

_LABEL: Final = r"(?![a-z0-9-]{64})[a-z0-9]+(-[a-z0-9]+)*"  # RFC 5891, 4.2.3.1, restricts consecutive hyphens
_PLAIN: Final = re.compile(rf"[a-z0-9._-]{{1,255}}@{_LABEL}(\.{_LABEL}){{0,3}}")
"""Most accounts' addresses; they are in prepared form, and slixmpp takes 9 MB to import."""


def _prepared(address: str) -> str:
    """Return the prepared form of an address, empty if it is invalid."""
    if _PLAIN.fullmatch(address):
        return address
    from slixmpp import JID, InvalidJID

    try:
        return str(JID(address))
    except (InvalidJID, UnicodeError):
        return ""


def is_canonical(address: str) -> bool:
    """Return whether an address, `[user@]domain[/resource]`, equals its prepared form byte for byte.

    A resource with `/` or `@` is not canonical. RFC 7622 allows it, but a program that reads the address from its end
    takes `bank@market/x@market/y` for an account `bank@market/x`. Servers do not assign such resources.
    """
    bare, slash, resource = address.partition("/")
    user, at, domain = bare.partition("@") if "@" in bare else ("", "", bare)
    if (at and not user) or (slash and not resource) or "@" in domain or "/" in resource or "@" in resource:
        return False
    # RFC 7622, 3.2, drops the dot of the root and turns A-labels into U-labels
    if not domain or domain.endswith(".") or "xn--" in domain:
        return False
    return _prepared(address) == address


def sender_of(address: str | None) -> str | None:
    """Return the account, `user@domain`, of a stanza's `from`; None if it is not canonical or names no account."""
    if address is None or not is_canonical(address):
        return None
    bare = address.partition("/")[0]
    return bare if "@" in bare else None


def account_problem(name: str, domain: str) -> str:
    """Return why a name cannot be an account's name; empty if it can."""
    if not name:
        return "it is empty"
    if len(name.encode("utf-8", "surrogatepass")) > PART_MAX_BYTES:
        return f"it is longer than {PART_MAX_BYTES} bytes"
    for character in "@/":
        if character in name:
            return f"it contains {character}"
    prepared = _prepared(f"{name}@{domain}")
    if not prepared:
        return "it contains characters that XMPP names must not contain (RFC 7622)"
    if prepared != f"{name}@{domain}" or not is_canonical(prepared):
        return f"it is not canonical; its prepared form is {prepared!a}"
    return ""
