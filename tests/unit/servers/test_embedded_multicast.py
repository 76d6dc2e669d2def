"""The embedded server's copies: who gets one, what is refused, and that nothing grows with what a stranger writes."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from ramp.model.instant import SECOND
from ramp.servers import embedded_multicast
from ramp.servers.embedded_multicast import Multicast
from ramp.servers.embedded_router import Router
from ramp.xmpp.multicast.addresses import Service, service_in

NAMESPACE = "http://jabber.org/protocol/address"
SENDER = "alice@localhost/s1"
NAMES = {"alice", "one", "two", "away"}


class Line:
    def __init__(self):
        self.stanzas = []

    def write(self, data):
        self.stanzas.append(ElementTree.fromstring(data))

    def is_closing(self):
        return False


class Domain:
    """A server with a hand-moved clock, `one` and `two` signed in and `away` not."""

    def __init__(self):
        self.router = Router("localhost", NAMES.__contains__)
        self.now = 0
        self.multicast = Multicast("localhost", self.router, lambda: self.now)
        self.lines = {name: self.sign_in(name) for name in ("one", "two")}

    def sign_in(self, name, session="r"):
        line = Line()
        self.router.bound(f"{name}@localhost", session, line)
        self.router.set_available(f"{name}@localhost", session, True)
        return line

    def spread(self, element):
        assert self.multicast.is_asked(element)
        return [ElementTree.fromstring(answer) for answer in self.multicast.spread(element, SENDER)]


@pytest.fixture
def domain():
    return Domain()


def asked(*receivers, kind="bcc", body="<cfp/>", inside="", stanza_type="chat", after=""):
    listed = "".join(f'<address type="{kind}" jid="{each}"/>' for each in receivers)
    return ElementTree.fromstring(
        f'<message xmlns="jabber:client" type="{stanza_type}" id="s1" to="localhost" from="bank@localhost">'
        f'<addresses xmlns="{NAMESPACE}">{listed}{inside}</addresses><body><![CDATA[{body}]]></body>'
        f'<x xmlns="jabber:x:data" type="form"/>{after}</message>'
    )


def condition(answer):
    (error,) = answer.findall("{jabber:client}error")
    return error[0].tag.removeprefix("{urn:ietf:params:xml:ns:xmpp-stanzas}")


def test_each_receiver_gets_one_copy_from_who_is_signed_in_and_sees_no_other(domain):
    assert domain.spread(asked("one@localhost", "two@localhost", "one@localhost")) == []
    for name, line in domain.lines.items():
        (copy,) = line.stanzas
        assert (copy.get("from"), copy.get("to"), copy.get("id")) == (SENDER, f"{name}@localhost", "s1")
        assert [child.tag for child in copy] == ["{jabber:client}body", "{jabber:x:data}x"]
        assert copy.findtext("{jabber:client}body") == "<cfp/>"


def test_who_is_away_gets_it_later_and_who_is_unknown_bounces_alone(domain):
    (answer,) = domain.spread(asked("away@localhost", "ghost@localhost", "one@localhost"))
    assert (answer.get("from"), answer.get("to")) == ("ghost@localhost", SENDER)
    assert condition(answer) == "service-unavailable"
    assert len(domain.lines["one"].stanzas) == 1
    assert [each.get("to") for each in domain.sign_in("away").stanzas] == ["away@localhost"]


def test_a_sessions_name_that_looks_like_xml_stays_a_name(domain):
    line = domain.sign_in("one", session="\"><script/>&'")
    assert domain.spread(asked("one@localhost/&quot;&gt;&lt;script/&gt;&amp;'")) == [] or not line.stanzas
    escaped = domain.sign_in("two", session='"<&>')
    assert domain.spread(asked("two@localhost/&quot;&lt;&amp;&gt;")) == []
    (copy,) = escaped.stanzas
    assert copy.get("to") == 'two@localhost/"<&>'


ADDRESS_IN = f'<addresses xmlns="{NAMESPACE}"><address type="bcc" jid="two@localhost"/></addresses>'


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        (asked(), "not-acceptable"),
        (asked(*(f"r{number}@localhost" for number in range(101))), "not-acceptable"),
        (asked("one@localhost", "two@elsewhere.example"), "forbidden"),
        (asked("one@localhost", "localhost"), "jid-malformed"),
        (asked("one@localhost", "TWO@localhost"), "jid-malformed"),
        (asked("one@localhost", ""), "jid-malformed"),
        (asked("one@localhost", kind="to"), "feature-not-implemented"),
        (asked("one@localhost", kind="replyto"), "feature-not-implemented"),
        (asked("one@localhost", inside='<address type="bcc" node="x"/>'), "feature-not-implemented"),
        (asked("one@localhost", inside='<address type="bcc" jid="two@localhost" delivered="true"/>'),
         "feature-not-implemented"),
        (asked("one@localhost", inside=ADDRESS_IN), "feature-not-implemented"),
        (asked("one@localhost", after=ADDRESS_IN), "bad-request"),
        (asked("one@localhost", "two@localhost", "away@localhost", "alice@localhost", body="x" * 1_000_000),
         "policy-violation"),
    ],
)  # fmt: skip
def test_what_is_not_served_is_refused_whole_and_once(domain, element, expected):
    (answer,) = domain.spread(element)
    assert (answer.get("from"), answer.get("to"), answer.get("id")) == ("localhost", SENDER, "s1")
    assert condition(answer) == expected
    assert len(ElementTree.tostring(answer)) < 1000  # the addresses do not come back
    assert not any(line.stanzas for line in domain.lines.values())


def test_an_error_is_not_spread_and_does_not_bounce(domain):
    assert domain.spread(asked("one@localhost", "ghost@localhost", stanza_type="error")) == []
    assert not any(line.stanzas for line in domain.lines.values())


def test_every_copy_counts_for_the_senders_rate(domain, monkeypatch):
    monkeypatch.setattr(embedded_multicast, "COPIES_PER_SECOND", 10)
    monkeypatch.setattr(embedded_multicast, "COPIES_AT_ONCE", 5)
    domain.multicast = Multicast("localhost", domain.router, lambda: domain.now)
    two = ("one@localhost", "two@localhost")
    assert domain.spread(asked(*two)) == domain.spread(asked(*two)) == []
    (refused,) = domain.spread(asked(*two))  # one is left, two are asked for
    assert condition(refused) == "resource-constraint"
    assert domain.spread(asked("one@localhost")) == []
    domain.now += SECOND // 10
    assert condition(domain.spread(asked(*two))[0]) == "resource-constraint"
    domain.now += SECOND // 10
    assert domain.spread(asked(*two)) == []
    assert len(domain.lines["two"].stanzas) == 3


def test_addresses_deeper_in_a_message_are_not_ours(domain):
    nested = ElementTree.fromstring(
        f'<message xmlns="jabber:client" to="localhost"><forwarded xmlns="urn:xmpp:forward:0">{ADDRESS_IN}</forwarded>'
        "<body>x</body></message>"
    )
    assert not domain.multicast.is_asked(nested)


def question(to="localhost", node="", space="http://jabber.org/protocol/disco#info"):
    inside = f'<query xmlns="{space}"{node}/>'
    return ElementTree.fromstring(
        f'<iq xmlns="jabber:client" type="get" id="q" to="{to}" from="{SENDER}">{inside}</iq>'
    )


def test_the_server_says_that_it_spreads_and_to_how_many(domain):
    answer = ElementTree.fromstring(domain.multicast.tell(question(), ["urn:xmpp:ping"]))
    assert service_in("localhost", answer) == Service("localhost", 100)
    assert (answer.get("id"), answer.get("to")) == ("q", SENDER)
    for other in (question(to="one@localhost"), question(node=' node="x"'), question(space="urn:xmpp:ping")):
        assert domain.multicast.tell(other, []) is None
