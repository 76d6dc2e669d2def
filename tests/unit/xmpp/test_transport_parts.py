"""The small parts of the transport: outbox, back-off, settings, trust."""

import asyncio
import ssl

import pytest

from ramp.errors import ConfigurationError
from ramp.servers import certificate
from ramp.xmpp import stream
from ramp.xmpp import transport as outboxes
from ramp.xmpp.link import LinkPolicy
from ramp.xmpp.transport import Outbox


def drained(outbox):
    return list(iter(outbox.take, None))


def test_outbox_keeps_order_and_gives_up_the_oldest(monkeypatch):
    monkeypatch.setattr(outboxes, "OUTBOX_MESSAGES_MAX", 3)
    outbox = Outbox()
    assert [outbox.put(text) for text in "abcde"] == [0, 0, 0, 1, 1]
    assert drained(outbox) == ["c", "d", "e"]


def test_outbox_puts_what_is_sent_again_before_the_rest():
    outbox = Outbox()
    outbox.put("new")
    outbox.put_first(["first", "second"])
    assert drained(outbox) == ["first", "second", "new"]


def test_outbox_counts_characters_and_keeps_one_that_is_larger_than_all(monkeypatch):
    monkeypatch.setattr(outboxes, "OUTBOX_BYTES_MAX", 10)
    outbox = Outbox()
    assert outbox.put("a" * 6) == 0
    assert outbox.put("b" * 6) == 1
    assert outbox.put("c" * 60) == 1
    assert drained(outbox) == ["c" * 60]
    assert outbox.put("d" * 10) == 0


def test_back_off_grows_to_its_cap_with_jitter_around_it():
    policy = LinkPolicy(backoff_first_s=1.0, backoff_factor=2.0, backoff_max_s=10.0)
    assert [policy.wait_before(attempt, 0.5) for attempt in (1, 2, 3, 4, 5, 6)] == [1, 2, 4, 8, 10, 10]
    assert policy.wait_before(1, 0.0) == 0.5
    assert policy.wait_before(1_000_000, 0.999) < 15.0


def test_missing_authority_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"nowhere\.pem"):
        stream.tls_context(tmp_path / "nowhere.pem")


def test_one_context_a_trust(tmp_path):
    ca_file = certificate.ensure_server_certificate(tmp_path, "localhost").ca_file
    assert stream.tls_context(ca_file) is stream.tls_context(ca_file)
    assert stream.tls_context(ca_file).verify_mode is ssl.CERT_REQUIRED


async def test_a_stranger_that_asks_for_an_agents_presence_is_not_answered(monkeypatch):
    said = []
    nothing = {"on_message": said.append, "on_misaddressed": said.append}
    client = stream.MarketStream(
        "bank@localhost", "secret", context=ssl.create_default_context(), register=False, **nothing
    )
    monkeypatch.setattr(client, "send", said.append)
    client.event("roster_subscription_request", client.make_presence(ptype="subscribe", pfrom="mallory@localhost"))
    await asyncio.sleep(0)
    assert said == []
