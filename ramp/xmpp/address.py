"""XMPP addresses: canonical, or not taken.

An address has one spelling here, its prepared form: what nodeprep, nameprep and resourceprep (RFC 6122, as slixmpp
implements them; RFC 7622 prepares the same way: width and case are mapped, composed characters preferred) make of it.
Whoever writes it otherwise (`BANK`, full-width letters, a soft hyphen in the middle) is not corrected but refused:
of two parties of which one prepares names and the other does not, each would take another for the same.
"""

from __future__ import annotations

from typing import Final

from slixmpp import JID, InvalidJID

PART_MAX_BYTES: Final = 1023
"""Longest local part, domain or resource, in bytes of UTF-8 (RFC 7622, 3.1)."""


def is_canonical(address: str) -> bool:
    """Whether an address, `[user@]domain[/resource]`, is byte for byte its own prepared form.

    A resource that holds `/` or `@` is not: RFC 7622 allows it, but what reads such an address from its end takes
    `bank@market/x@market/y` for an account `bank@market/x`, and servers give out none.
    """
    bare, slash, resource = address.partition("/")
    user, at, domain = bare.partition("@") if "@" in bare else ("", "", bare)
    if (at and not user) or (slash and not resource) or "@" in domain or "/" in resource or "@" in resource:
        return False
    # one of two spellings of a domain: RFC 7622, 3.2, drops the root's dot and turns A-labels into U-labels
    if not domain or domain.endswith(".") or "xn--" in domain:
        return False
    try:
        return str(JID(address)) == address
    except (InvalidJID, UnicodeError):
        return False


def sender_of(address: str | None) -> str | None:
    """The account, `user@domain`, that a stanza's `from` names; None where it is not canonical or names none."""
    if address is None or not is_canonical(address):
        return None
    bare = address.partition("/")[0]
    return bare if "@" in bare else None


def account_problem(name: str, domain: str) -> str:
    """Why there can be no account of a name; empty if there can.

    Args:
        name: the local part as asked for.
        domain: of the account's server.
    """
    if not name:
        return "it is empty"
    if len(name.encode("utf-8", "surrogatepass")) > PART_MAX_BYTES:
        return f"it is longer than {PART_MAX_BYTES} bytes"
    for character in "@/":
        if character in name:
            return f"it holds {character!r}"
    try:
        prepared = str(JID(f"{name}@{domain}"))
    except (InvalidJID, UnicodeError):
        return "it holds characters that no XMPP name may hold (RFC 7622)"
    if prepared != f"{name}@{domain}" or not is_canonical(prepared):
        return f"it is not canonical; its prepared form is {prepared!a}"
    return ""
