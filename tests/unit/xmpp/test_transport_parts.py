"""The small parts of the transport: outbox, back-off, settings, trust."""

import asyncio
import ssl
from collections import deque
from types import SimpleNamespace

import pytest

from ramp.errors import ConfigurationError
from ramp.servers import certificate
from ramp.xmpp import stream, transport
from ramp.xmpp.link import LinkPolicy, TransportSettings


@pytest.mark.parametrize(
    ("stanzas", "kept"),
    [
        ([], []),
        (["a", "b", "c"], ["a", "b", "c"]),
        (["a", "b", "c", "d", "e"], ["c", "d", "e"]),
        (["a" * 6, "b" * 4], ["a" * 6, "b" * 4]),
        (["a" * 6, "b" * 6], ["b" * 6]),
        (["a", "b" * 60], ["b" * 60]),
    ],
)
def test_an_outbox_gives_up_the_oldest_and_keeps_one_that_is_larger_than_all(monkeypatch, stanzas, kept):
    monkeypatch.setattr(transport, "OUTBOX_MESSAGES_MAX", 3)
    monkeypatch.setattr(transport, "OUTBOX_BYTES_MAX", 10)
    outbox = deque(stanzas)
    assert transport.drop_oldest(outbox) == len(stanzas) - len(kept)
    assert list(outbox) == kept


async def test_what_is_sent_again_comes_before_the_rest():
    class Silent(transport.MarketAgent):
        async def on_message(self, message):
            raise NotImplementedError

    sent = []
    agent = Silent("a@localhost", "secret", TransportSettings(servers=(("localhost", 1),)))
    agent.client = SimpleNamespace(send_text=sent.append, send_presence=lambda: None)
    agent._outbox.append("new")
    agent._came_up(False, ["first", "second"])
    assert sent == ["first", "second", "new"]


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
    client = stream.MarketStream("bank@localhost", "secret", context=ssl.create_default_context(), **nothing)
    monkeypatch.setattr(client, "send", said.append)
    client.event("roster_subscription_request", client.make_presence(ptype="subscribe", pfrom="mallory@localhost"))
    await asyncio.sleep(0)
    assert said == []
