"""What XEP-0033 writes and says, pure: addresses of a stanza, a service and its limit, and what is under way.

Every receiver is named with `type="bcc"`: with `to` each copy would list all of them. A service is found by asking
(XEP-0030) for the feature that is also the namespace; how many receivers it takes in a stanza it may say in a form
(XEP-0128) whose `FORM_TYPE` is that namespace, in the field `message`, as ejabberd's does.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import quoteattr

from ramp.xmpp.address import is_canonical
from ramp.xmpp.wire import STANZA_MAX_BYTES, PreparedMessage

ADDRESS: Final = "http://jabber.org/protocol/address"
"""Namespace of the addresses, the feature of a service, and the type of the form with its limit."""

RECEIVERS_UNSAID: Final = 20
"""Receivers in a stanza to a service that does not say its limit; XEP-0033 recommends limits from there to 100."""

RECEIVERS_MAX: Final = 500
"""Most receivers put into one stanza, whatever a service allows: their addresses have to fit into it too."""

ITEMS_MAX: Final = 20
"""Services of a server that are asked what they are, at most."""

UNDER_WAY_MAX: Final = 64
"""Spread messages kept in case the service refuses them; older ones are left to the protocol, which sends again."""

DISCO_INFO: Final = "http://jabber.org/protocol/disco#info"
DISCO_ITEMS: Final = "http://jabber.org/protocol/disco#items"
_DATA: Final = "{jabber:x:data}"


@dataclass(frozen=True, slots=True)
class Service:
    """A service that spreads.

    Attributes:
        address: the domain it is spoken to by.
        receivers_max: receivers in a stanza, at least 2.
    """

    address: str
    receivers_max: int = RECEIVERS_UNSAID


def service_in(address: str, answer: ElementTree.Element) -> Service | None:
    """Read a `disco#info` answer: the service at that address, None where it does not spread.

    Args:
        address: whom we asked.
        answer: the `iq`.
    """
    query = answer.find(f"{{{DISCO_INFO}}}query")
    if query is None or all(each.get("var") != ADDRESS for each in query.iterfind(f"{{{DISCO_INFO}}}feature")):
        return None
    limit = RECEIVERS_UNSAID
    for form in query.iterfind(f"{_DATA}x"):
        said = {each.get("var"): each.findtext(f"{_DATA}value") or "" for each in form.iterfind(f"{_DATA}field")}
        number = said.get("message", "")
        if said.get("FORM_TYPE") == ADDRESS and number.isascii() and number.isdecimal() and len(number) < 10:
            limit = min(int(number), RECEIVERS_MAX)
    return Service(address, limit) if limit >= 2 else None


def services_in(domain: str, answer: ElementTree.Element) -> list[str]:
    """Read a `disco#items` answer: the domains below ours that might spread, at most `ITEMS_MAX`.

    Args:
        domain: of our own server, whom we asked.
        answer: the `iq`.
    """
    found = [each.get("jid") or "" for each in answer.iterfind(f"{{{DISCO_ITEMS}}}query/{{{DISCO_ITEMS}}}item")]
    own = [each for each in found if each.endswith(f".{domain}") and not {"@", "/"} & set(each) and is_canonical(each)]
    return list(dict.fromkeys(own))[:ITEMS_MAX]


def addressed_to_many(
    prepared: PreparedMessage,
    receivers: Sequence[str],
    *,
    service: str,
    sender: str,
    stanza_id: str,
    stanza_max_bytes: int = STANZA_MAX_BYTES,
) -> str:
    """The stanza by which a service is asked to spread a message.

    Args:
        prepared: the message.
        receivers: addresses `user@domain`.
        service: address of the service.
        sender: our own address.
        stanza_id: unique id of this stanza.
        stanza_max_bytes: size limit of the stanza in bytes of UTF-8.

    Raises:
        DocumentTooLarge: the stanza would be over the limit.
    """
    listed = "".join(f'<address type="bcc" jid={quoteattr(each)}/>' for each in receivers)
    return prepared.addressed(
        to=service,
        sender=sender,
        stanza_id=stanza_id,
        stanza_max_bytes=stanza_max_bytes,
        before=f'<addresses xmlns="{ADDRESS}">{listed}</addresses>',
    )


def lots(receivers: Sequence[str], most: int) -> Iterator[Sequence[str]]:
    """Receivers in as few lots as can be, which are as equal as can be: a last one of one receiver gains nothing.

    Args:
        receivers: at least one.
        most: receivers in a lot, at most.
    """
    number = -(-len(receivers) // most)
    for index in range(number):
        yield receivers[index * len(receivers) // number : (index + 1) * len(receivers) // number]


class UnderWay:
    """What a service has been asked to spread and may still refuse."""

    def __init__(self) -> None:
        self._lots: OrderedDict[str, tuple[Sequence[str], PreparedMessage]] = OrderedDict()

    def __len__(self) -> int:
        """How many stanzas are kept."""
        return len(self._lots)

    def add(self, stanza_id: str, receivers: Sequence[str], prepared: PreparedMessage) -> None:
        """Keep a message that a service is asked to spread."""
        self._lots[stanza_id] = receivers, prepared
        while len(self._lots) > UNDER_WAY_MAX:
            self._lots.popitem(last=False)

    def take(self, stanza_id: str) -> tuple[Sequence[str], PreparedMessage] | None:
        """Receivers and message of a stanza that was refused; None where it is not ours, or was refused before."""
        return self._lots.pop(stanza_id, None)
