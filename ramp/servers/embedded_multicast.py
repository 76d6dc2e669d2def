"""The embedded server spreads one message to many of its accounts (XEP-0033), for those that are signed in to it.

Only what the market needs is served: hidden receivers (`bcc`) of this domain. A message is spread whole or refused
whole, with an error that says why; whoever is refused can send plainly, so a limit hinders nobody who is honest.
Unknown receivers bounce one by one, as from plain messages.
"""

from __future__ import annotations

import secrets
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Final
from xml.sax.saxutils import escape

from ramp.model.instant import Instant
from ramp.runtime.config import QuotaConfig
from ramp.servers.embedded_router import Router, bounce
from ramp.xmpp.address import sender_of
from ramp.xmpp.multicast.addresses import ADDRESS, DISCO_INFO
from ramp.xmpp.quotas import SenderQuota

RECEIVERS_MAX: Final = 100
"""Receivers of a message, at most: ejabberd's default (XEP-0033 recommends fewer than 100 and more than 20)."""

VOLUME_MAX: Final = 4_000_000
"""Bytes of all copies of a message together: a hundred receivers of 40 kB."""

COPIES_PER_SECOND: Final = 2_000
"""Copies that one account may have made in the long run: ten rounds with 200 resources every second."""

COPIES_AT_ONCE: Final = 20_000
"""Copies that it may have made at once, after ten seconds of silence."""

_CLIENT = "{jabber:client}"
_ADDRESSES = f"{{{ADDRESS}}}addresses"
_ONE_ADDRESS = f"{{{ADDRESS}}}address"
_DATA = "{jabber:x:data}"
_QUOTE = {'"': "&quot;"}  # a session's name may hold it, and < and &


class Multicast:
    """The service of one domain, which it is spoken to by.

    Args:
        domain: the XMPP domain.
        router: delivers the copies.
        now: microseconds of a clock that never goes back.
    """

    def __init__(self, domain: str, router: Router, now: Callable[[], Instant]) -> None:
        self._domain = domain
        self._router = router
        self._now = now
        self._quota = SenderQuota(QuotaConfig(COPIES_PER_SECOND, COPIES_AT_ONCE))

    def is_asked(self, element: ElementTree.Element) -> bool:
        """Whether a message is for this service: to the domain itself, with addresses."""
        return element.get("to") == self._domain and element.find(_ADDRESSES) is not None

    def spread(self, element: ElementTree.Element, sender: str) -> list[bytes]:
        """Give a message to all whom it names.

        Args:
            element: the message.
            sender: the full address that the sender has logged in with; every copy is from it.

        Returns:
            Error stanzas for the sender: one that refuses it all, or one for each receiver who cannot be reached.
        """
        if element.get("type") == "error":
            return []  # errors never bounce (RFC 6120, 8.3.1), and nobody wants a hundred of them
        receivers, condition = self._receivers(element)
        for addresses in element.findall(_ADDRESSES):
            element.remove(addresses)
        element.set("from", sender)
        if not condition:
            head, tail = _around_receiver(element)
            if (len(head) + len(tail)) * len(receivers) > VOLUME_MAX:
                condition = "policy-violation"
            elif not self._quota.admits(sender.partition("/")[0], self._now(), len(receivers)):
                condition = "resource-constraint"
        if condition:
            element.set("to", self._domain)
            return _only([bounce(element, condition)])
        answers = []
        for receiver in receivers:
            if problem := self._router.hand_over(receiver, head + escape(receiver, _QUOTE).encode() + tail):
                element.set("to", receiver)
                answers.append(bounce(element, problem))
        return _only(answers)

    def _receivers(self, element: ElementTree.Element) -> tuple[list[str], str]:
        """Whom a message is for, each once, and why it is refused, if it is."""
        listed = element.findall(_ADDRESSES)
        if len(listed) != 1:
            return [], "bad-request"
        if not 0 < len(listed[0]) <= RECEIVERS_MAX:
            return [], "not-acceptable"
        found: dict[str, None] = {}
        for each in listed[0]:
            if each.tag != _ONE_ADDRESS or each.get("type") != "bcc" or each.attrib.keys() - {"type", "jid"}:
                return [], "feature-not-implemented"
            receiver = each.get("jid") or ""
            if sender_of(receiver) is None:
                return [], "jid-malformed"
            if receiver.partition("/")[0].partition("@")[2] != self._domain:
                return [], "forbidden"
            found[receiver] = None
        return list(found), ""

    def tell(self, element: ElementTree.Element, features: list[str]) -> bytes | None:
        """Answer who asks this server what it can (XEP-0030), with this among it.

        Args:
            element: an `iq`.
            features: what else it can.

        Returns:
            The answer; None where something else is asked.
        """
        query = element.find(f"{{{DISCO_INFO}}}query")
        if element.get("type") != "get" or element.get("to") != self._domain or query is None or query.get("node"):
            return None
        whose = {"type": "result", "id": element.get("id") or "", "from": self._domain, "to": element.get("from") or ""}
        answer = ElementTree.Element(f"{_CLIENT}iq", whose)
        result = ElementTree.SubElement(answer, query.tag)
        identity = {"category": "server", "type": "im", "name": "RAMP"}
        ElementTree.SubElement(result, f"{{{DISCO_INFO}}}identity", identity)
        for feature in (*features, ADDRESS):
            ElementTree.SubElement(result, f"{{{DISCO_INFO}}}feature", {"var": feature})
        form = ElementTree.SubElement(result, f"{_DATA}x", {"type": "result"})
        for name, kind, value in (("FORM_TYPE", "hidden", ADDRESS), ("message", "text-single", str(RECEIVERS_MAX))):
            field = ElementTree.SubElement(form, f"{_DATA}field", {"var": name, "type": kind})
            ElementTree.SubElement(field, f"{_DATA}value").text = value
        return bytes(ElementTree.tostring(answer))


def _around_receiver(element: ElementTree.Element) -> tuple[bytes, bytes]:
    """A message as bytes before and after its receiver, so that it is written once for all."""
    place = secrets.token_hex(16)
    element.set("to", place)
    head, _, tail = bytes(ElementTree.tostring(element)).partition(place.encode())
    return head, tail


def _only(answers: list[bytes | None]) -> list[bytes]:
    return [each for each in answers if each is not None]
