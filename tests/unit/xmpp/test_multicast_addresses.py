"""XEP-0033 as text: what is written to a service, what services say of themselves, lots and what is kept of them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from ramp.errors import DocumentTooLarge
from ramp.xmpp import wire
from ramp.xmpp.multicast import addresses
from ramp.xmpp.multicast.addresses import Service, UnderWay, addressed_to_many, lots, service_in, services_in

NAMESPACE = "http://jabber.org/protocol/address"  # XEP-0033, 12
PREPARED = wire.prepare_message(to="a@x", body="<cfp a='1'/>", metadata={"performative": "cfp"}, thread="t")


def info(features=(NAMESPACE,), form=""):
    listed = "".join(f'<feature var="{each}"/>' for each in features)
    query = f'<query xmlns="http://jabber.org/protocol/disco#info">{listed}{form}</query>'
    return ElementTree.fromstring(f'<iq xmlns="jabber:client" type="result">{query}</iq>')


def form(kind, **fields):
    values = {"FORM_TYPE": kind, **fields}
    listed = "".join(f'<field var="{key}"><value>{value}</value></field>' for key, value in values.items())
    return f'<x xmlns="jabber:x:data" type="result">{listed}</x>'


def items(*listed):
    written = "".join(f'<item jid="{each}"/>' for each in listed)
    query = f'<query xmlns="http://jabber.org/protocol/disco#items">{written}</query>'
    return ElementTree.fromstring(f'<iq xmlns="jabber:client" type="result">{query}</iq>')


def test_every_receiver_is_hidden_from_the_others_and_the_message_is_as_it_was():
    receivers = ["a@x", "o'b&c@x"]
    text = addressed_to_many(PREPARED, receivers, service="multicast.x", sender="u@x", stanza_id="7")
    element = ElementTree.fromstring(text)
    assert (element.get("to"), element.get("from"), element.get("id")) == ("multicast.x", "u@x", "7")
    (listed,) = element.findall(f"{{{NAMESPACE}}}addresses")
    assert [(each.get("type"), each.get("jid")) for each in listed] == [("bcc", each) for each in receivers]
    read = wire.decode_element(element)
    assert (read.body, read.metadata, read.thread) == ("<cfp a='1'/>", {"performative": "cfp"}, "t")


def test_the_limit_of_a_stanza_counts_the_addresses():
    plain = PREPARED.addressed(to="s", sender="u@x", stanza_id="7")
    limit = len(plain.encode()) + 60
    with pytest.raises(DocumentTooLarge):
        addressed_to_many(PREPARED, ["a@x", "b@x"], service="s", sender="u@x", stanza_id="7", stanza_max_bytes=limit)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (info(), Service("s", 20)),
        (info(features=("urn:xmpp:ping",)), None),
        (info(form=form(NAMESPACE, message="100")), Service("s", 100)),
        (info(form=form("urn:other", message="100")), Service("s", 20)),
        (info(form=form(NAMESPACE, message="many")), Service("s", 20)),
        (info(form=form(NAMESPACE, message="-5")), Service("s", 20)),
        (info(form=form(NAMESPACE, message="٣")), Service("s", 20)),
        (info(form=form(NAMESPACE, message="9" * 5000)), Service("s", 20)),
        (info(form=form(NAMESPACE, message="999999")), Service("s", addresses.RECEIVERS_MAX)),
        (info(form=form(NAMESPACE, message="1")), None),  # nothing is gained by it
        (items("s"), None),
    ],
)
def test_a_service_is_known_by_the_feature_and_its_form(answer, expected):
    assert service_in("s", answer) == expected


def test_only_domains_below_our_own_are_asked():
    strange = [
        "evil.example",
        "x",
        "room@muc.x",
        "evilx",
        "UPPER.x",
        "multicast.x",
        "multicast.x",
        "pub.x",
        "",
        "a/b.x",
    ]
    assert services_in("x", items(*strange)) == ["multicast.x", "pub.x"]
    assert len(services_in("x", items(*(f"s{number}.x" for number in range(1000))))) == addresses.ITEMS_MAX


@pytest.mark.parametrize("most", [2, 3, 7, 20])
@pytest.mark.parametrize("number", [1, 2, 3, 20, 21, 199, 200])
def test_lots_are_few_and_equal_and_leave_nobody_out(most, number):
    receivers = [f"r{index}@x" for index in range(number)]
    found = list(lots(receivers, most))
    assert [each for lot in found for each in lot] == receivers
    sizes = {len(lot) for lot in found}
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1
    assert (len(found) - 1) * most < number  # one lot less would not hold them


def test_what_is_under_way_is_given_back_once_and_is_bounded():
    kept = UnderWay()
    for number in range(addresses.UNDER_WAY_MAX + 5):
        kept.add(f"{number}", [f"r{number}@x"], PREPARED)
    assert len(kept) == addresses.UNDER_WAY_MAX
    assert kept.take("4") is None
    assert kept.take("5") == (["r5@x"], PREPARED)
    assert kept.take("5") is None
    assert kept.take("somebody else's") is None
