"""The embedded server's routing: who gets a message, in which order, what bounces, and which clients are cut."""

import ssl
import xml.etree.ElementTree as ElementTree
from unittest.mock import Mock

import pytest

from ramp.servers import embedded_process, embedded_router
from ramp.servers.embedded_process import Connection
from ramp.servers.embedded_router import Router
from tests.waiting import soon


class Line:
    def __init__(self):
        self.bodies = []
        self.senders = []
        self.closing = False

    def write(self, data):
        element = ElementTree.fromstring(data)
        self.bodies.append(element.findtext("{jabber:client}body"))
        self.senders.append(element.get("from"))

    def is_closing(self):
        return self.closing

    def cut(self, _):
        self.closing = True


def account_exists(user):
    return user in {"ral", "alice"}


@pytest.fixture
def router():
    return Router("localhost", account_exists)


def message(body, to="ral@localhost", sender="mallory@elsewhere", stanza_type="chat"):
    return ElementTree.fromstring(
        f'<message xmlns="jabber:client" type="{stanza_type}" id="s1" to="{to}" from="{sender}">'
        f"<body>{body}</body></message>"
    )


def condition(bounce):
    error = ElementTree.fromstring(bounce).find("{jabber:client}error")
    return error[0].tag.removeprefix("{urn:ietf:params:xml:ns:xmpp-stanzas}")


def online(router, resource="r1", bare="ral@localhost"):
    line = Line()
    router.logged_in(bare, resource, line)
    router.set_available(bare, resource, True)
    return line


def test_sender_is_the_one_who_logged_in(router):
    line = online(router)
    assert router.deliver(message("hello", sender="bank@localhost"), "alice@localhost/x") is None
    assert line.senders == ["alice@localhost/x"]


def test_messages_for_an_absent_account_come_later_in_order(router):
    for number in range(5):
        assert router.deliver(message(number), "alice@localhost/x") is None
    line = Line()
    router.logged_in("ral@localhost", "r1", line)
    assert line.bodies == []  # logged in, but has not said that it takes messages
    router.set_available("ral@localhost", "r1", True)
    assert line.bodies == ["0", "1", "2", "3", "4"]
    router.gone("ral@localhost", "r1")
    assert online(router, "r2").bodies == []  # once only


@pytest.mark.parametrize("limit", ["KEPT_PER_ACCOUNT_MAX", "KEPT_BYTES_PER_ACCOUNT_MAX"])
def test_oldest_kept_message_goes_first(limit, router, monkeypatch):
    router.deliver(message(0), "alice@localhost/x")
    monkeypatch.setattr(embedded_router, limit, 3 * (router._kept_bytes if "BYTES" in limit else 1))
    for number in range(1, 5):
        router.deliver(message(number), "alice@localhost/x")
    assert online(router).bodies == ["2", "3", "4"]


def test_full_store_bounces_and_empties_again(router, monkeypatch):
    monkeypatch.setattr(embedded_router, "KEPT_BYTES_MAX", 250)
    answers = [router.deliver(message(number), "alice@localhost/x") for number in range(3)]
    assert answers[0] is None
    assert condition(answers[-1]) == "resource-constraint"
    online(router)
    router.gone("ral@localhost", "r1")
    assert router.deliver(message("again"), "alice@localhost/x") is None


def test_messages_for_a_closed_account_do_not_reach_the_next_owner_of_its_name(router):
    router.deliver(message("for the first"), "alice@localhost/x")
    router.close("ral")
    assert online(router).bodies == []


def test_other_domain_bounces(router):
    answer = router.deliver(message("hello", to="ral@example.org"), "alice@localhost/x")
    assert condition(answer) == "remote-server-not-found"
    element = ElementTree.fromstring(answer)
    assert (element.get("to"), element.get("from"), element.get("id")) == ("alice@localhost/x", "ral@example.org", "s1")
    assert condition(router.deliver(message("hello", to="localhost"), "a@localhost/x")) == "service-unavailable"


def test_unknown_account_bounces(router):
    assert condition(router.deliver(message("x", to="ghost@localhost"), "alice@localhost/x")) == "service-unavailable"


def test_errors_do_not_bounce(router):
    error = message("x", to="ghost@localhost", stanza_type="error")
    assert router.deliver(error, "alice@localhost/x") is None
    assert router.deliver(message("x", to="g@example.org", stanza_type="error"), "alice@localhost/x") is None


def test_newest_living_session_gets_the_messages(router):
    old, new = online(router, "r1"), online(router, "r2")
    router.deliver(message("one"), "alice@localhost/x")
    new.closing = True
    router.deliver(message("two"), "alice@localhost/x")
    router.gone("ral@localhost", "r1")
    router.deliver(message("three"), "alice@localhost/x")  # kept
    assert (old.bodies, new.bodies) == (["two"], ["one"])
    assert online(router, "r3").bodies == ["three"]


def test_first_of_too_many_sessions_ends(router):
    lines = [online(router, f"r{number}") for number in range(embedded_router.SESSIONS_MAX + 1)]
    assert [line.closing for line in lines] == [True] + [False] * embedded_router.SESSIONS_MAX


def test_full_address_picks_its_session_and_falls_back(router):
    first, second = online(router, "r1"), online(router, "r2")
    router.deliver(message("one", to="ral@localhost/r1"), "alice@localhost/x")
    router.deliver(message("two", to="ral@localhost/gone"), "alice@localhost/x")
    assert (first.bodies, second.bodies) == (["one"], ["two"])


def test_unavailable_session_is_passed_over(router):
    line = online(router)
    router.set_available("ral@localhost", "r1", False)
    router.deliver(message("one"), "alice@localhost/x")
    assert line.bodies == []
    router.set_available("ral@localhost", "r1", True)
    assert line.bodies == ["one"]


async def connected(unread=0):
    connection = Connection(Mock(), Router("localhost", bool), ssl.create_default_context())
    transport = Mock(get_write_buffer_size=lambda: unread, is_closing=lambda: False)
    connection.connection_made(transport)
    return connection, transport


async def test_client_that_never_logs_in_is_cut(monkeypatch):
    monkeypatch.setattr(embedded_process, "LOG_IN_LIMIT_S", 0)
    _, transport = await connected()
    transport.abort.assert_not_called()
    await soon(lambda: transport.abort.called)


@pytest.mark.parametrize(("most", "cut"), [(100, True), (101, False)])
async def test_client_that_reads_nothing_is_cut(monkeypatch, most, cut):
    monkeypatch.setattr(embedded_process, "UNREAD_BYTES_MAX", most)
    connection, transport = await connected(unread=101)
    connection.write(b"x")
    assert transport.abort.called is cut


async def test_client_that_has_logged_in_but_has_no_address_yet_ends_with_its_account():
    connection, transport = await connected()
    connection._accounts.log_in.return_value = "ral"
    connection._log_in(ElementTree.Element("{urn:ietf:params:xml:ns:xmpp-sasl}auth"))
    connection._router.close("ral")
    transport.close.assert_called_once()
