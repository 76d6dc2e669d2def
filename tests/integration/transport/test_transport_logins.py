"""Log-ins that fail, and the next server of the list."""

import asyncio
from dataclasses import replace

import pytest

from ramp.errors import ConfigurationError, TransportError
from ramp.xmpp.link import LinkPolicy
from ramp.xmpp.settings import TransportSettings
from ramp.xmpp.transport import MarketAgent
from tests.integration.transport.transport_party import LIMIT_S, PATIENT, Party


async def test_wrong_password_is_said_and_soon(crowd, settings):
    await crowd("owner")
    thief = Party("owner", settings, password="guess")
    async with asyncio.timeout(LIMIT_S):
        with pytest.raises(TransportError, match=r"owner@localhost.*refuses the log-in"):
            await thief.start()


async def test_nobody_there_is_said_after_the_limit():
    policy = LinkPolicy(start_limit_s=0.5, backoff_first_s=0.05)
    agent = Party("lost", TransportSettings(servers=(("127.0.0.1", 9),), policy=policy))
    with pytest.raises(TransportError, match=r"no XMPP session within 0\.5 s; tried 127\.0\.0\.1:9"):
        await agent.start()
    await agent.stop()


async def test_server_that_says_nothing_does_not_hang_the_start_and_is_not_knocked_at_ever_again(unused_tcp_port):
    """Each attempt without an answer gets twice the time of the last, up to eight times: five fill a second here."""
    knocked = []
    silent = await asyncio.start_server(lambda reader, _: knocked.append(reader), "127.0.0.1", unused_tcp_port)
    policy = LinkPolicy(start_limit_s=1.0, attempt_limit_s=0.05, backoff_first_s=0.001, backoff_max_s=0.001)
    settings = TransportSettings(servers=(("127.0.0.1", unused_tcp_port),), policy=policy)
    agent = Party("patient", settings)
    with pytest.raises(TransportError, match="no XMPP session"):
        await agent.start()
    silent.close()
    assert 1 <= len(knocked) <= 5


async def test_server_of_another_authority_is_refused(settings, tmp_path):
    from ramp.servers.certificate import ensure_server_certificate

    other = ensure_server_certificate(tmp_path, "localhost").ca_file
    agent = Party("careful-login", TransportSettings(servers=settings.servers, ca_file=other, policy=PATIENT))
    async with asyncio.timeout(LIMIT_S):
        with pytest.raises(TransportError, match="certificate is not trusted"):
            await agent.start()


async def test_next_server_of_the_list_is_tried(crowd, settings):
    policy = replace(PATIENT, backoff_first_s=0.05)
    servers = (("127.0.0.1", 9), *settings.servers)
    agent = await crowd("chooser", settings=TransportSettings(servers=servers, ca_file=settings.ca_file, policy=policy))
    assert agent.is_connected


@pytest.mark.parametrize("jid", ["nobody", "@localhost", "a@b/c", "a b@localhost", ""])
def test_bad_addresses_are_refused(jid, settings):
    class Named(Party):
        def __init__(self):
            MarketAgent.__init__(self, jid, "secret", settings)

    with pytest.raises(ConfigurationError, match="invalid XMPP address"):
        Named()
