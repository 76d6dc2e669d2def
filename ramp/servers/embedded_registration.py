"""Pre-authenticated registration on the embedded server, for one client before its log-in.

A client sends a token (XEP-0445) and then registers the account that the token is for (XEP-0077). There is no
registration without a token.
"""

from __future__ import annotations

import logging
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Final

from ramp.model.instant import Instant
from ramp.runtime.joining.account_tokens import TOKEN_CHARACTERS_MAX
from ramp.runtime.storage_errors import reason_of
from ramp.servers.accounts import PASSWORD_BYTES_MAX, Accounts
from ramp.xmpp.quotas import Complaints

FEATURE: Final = "<register xmlns='urn:xmpp:ibr-token:0'/>"
"""Stream feature that announces the registration (XEP-0445, 3)."""

REFUSALS_MAX: Final = 3
"""Number of refusals that ends a connection, so that guessing a token needs many encrypted connections."""

_PREAUTH: Final = "{urn:xmpp:pars:0}preauth"
_REGISTER: Final = "{jabber:iq:register}"
_STANZAS: Final = "urn:ietf:params:xml:ns:xmpp-stanzas"

_complaints = Complaints()
_log = logging.getLogger(__name__)


class Registration:
    """Answers the requests of one client before its log-in.

    Args:
        accounts: of the server.
        domain: domain of the server.
        now: returns the current time, to check the expiry of tokens.
    """

    def __init__(self, accounts: Accounts, domain: str, now: Callable[[], Instant]) -> None:
        self._accounts = accounts
        self._domain = domain
        self._now = now
        self._accepted: tuple[str, str] | None = None
        self._refusals = 0

    def answer(self, asked: ElementTree.Element) -> tuple[bytes, bool]:
        """Answer an `iq` of a client before its log-in.

        Returns:
            The answer, and whether to disconnect the client because of too many refusals.
        """
        preauth, query = asked.find(_PREAUTH), asked.find(f"{_REGISTER}query")
        kind = asked.get("type")
        if preauth is not None and kind == "set":
            return self._take_token(asked, preauth.get("token") or "")
        if query is None or kind not in ("get", "set") or self._accepted is None:
            return self._refused(asked, "auth", "not-allowed", "registration needs a token")
        if kind == "get":
            return self._fields(asked, self._accepted[1]), False
        return self._register(asked, query, *self._accepted)

    def _take_token(self, asked: ElementTree.Element, token: str) -> tuple[bytes, bool]:
        name = self._accounts.name_for(token, self._now()) if 0 < len(token) <= TOKEN_CHARACTERS_MAX else None
        if name is None:
            self._accepted = None
            return self._refused(asked, "cancel", "item-not-found", "the token is unknown, used or expired")
        self._accepted = token, name
        return self._result(asked), False

    def _register(
        self, asked: ElementTree.Element, query: ElementTree.Element, token: str, name: str
    ) -> tuple[bytes, bool]:
        said = query.findtext(f"{_REGISTER}username")
        password = query.findtext(f"{_REGISTER}password") or ""
        if query.find(f"{_REGISTER}remove") is not None or said != name:
            return self._refused(asked, "modify", "not-acceptable", f"the token is for the account {name} only")
        if not 0 < len(password.encode("utf-8", "surrogatepass")) <= PASSWORD_BYTES_MAX or "\0" in password:
            text = f"the password must have 1 to {PASSWORD_BYTES_MAX} bytes and no NUL"
            return self._refused(asked, "modify", "not-acceptable", text)
        try:
            made = self._accounts.register(name, token, password)
        except OSError as error:
            _log.error("cannot store the account %s: %s", name, reason_of(error))
            return self._refused(asked, "wait", "internal-server-error", "it cannot be stored now; try again later")
        if not made:
            return self._refused(asked, "cancel", "conflict", "the token was used or revoked meanwhile")
        _log.warning("registered the account %s", name)
        return self._result(asked), False

    def _fields(self, asked: ElementTree.Element, name: str) -> bytes:
        answer = self._answer(asked, "result")
        query = ElementTree.SubElement(answer, f"{_REGISTER}query")
        ElementTree.SubElement(query, f"{_REGISTER}username").text = name
        ElementTree.SubElement(query, f"{_REGISTER}password")
        return bytes(ElementTree.tostring(answer))

    def _result(self, asked: ElementTree.Element) -> bytes:
        return bytes(ElementTree.tostring(self._answer(asked, "result")))

    def _refused(self, asked: ElementTree.Element, kind: str, condition: str, text: str) -> tuple[bytes, bool]:
        self._refusals += 1
        if _complaints.is_due("registration", condition, time.monotonic_ns() // 1000):
            _log.warning("refused a registration: %s", text)
        answer = self._answer(asked, "error")
        error = ElementTree.SubElement(answer, "error", {"type": kind})
        ElementTree.SubElement(error, condition, {"xmlns": _STANZAS})
        ElementTree.SubElement(error, "text", {"xmlns": _STANZAS}).text = text
        return bytes(ElementTree.tostring(answer)), self._refusals >= REFUSALS_MAX

    def _answer(self, asked: ElementTree.Element, kind: str) -> ElementTree.Element:
        return ElementTree.Element("iq", {"type": kind, "id": asked.get("id") or "", "from": self._domain})
