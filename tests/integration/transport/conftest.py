"""Agents on the embedded XMPP server."""

import asyncio

import pytest

from ramp.servers.embedded import EmbeddedServer
from ramp.xmpp.link import TransportSettings
from tests.integration.transport.transport_party import PATIENT, Party


@pytest.fixture(scope="package")
def server(tmp_path_factory):
    with EmbeddedServer(tmp_path_factory.mktemp("xmpp")) as running:
        yield running
    assert "Traceback" not in running.log_file.read_text()


@pytest.fixture
def settings(server):
    return TransportSettings(servers=((server.host, server.port),), ca_file=server.ca_file, policy=PATIENT)


@pytest.fixture
async def crowd(server, settings):
    """Makes started agents and stops them in the end."""
    agents = []

    async def make(*names, kind=Party, **options):
        await asyncio.to_thread(server.ensure_accounts, dict.fromkeys(names, "secret"))
        made = [kind(name, options.get("settings", settings)) for name in names]
        agents.extend(made)
        await asyncio.gather(*(agent.start() for agent in made))
        return made[0] if len(made) == 1 else made

    yield make
    await asyncio.gather(*(agent.stop() for agent in agents))
