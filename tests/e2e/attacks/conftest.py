"""Rogue clients to set on a market."""

import asyncio

import pytest

from ramp.cli.main import main
from ramp.client import swarm
from ramp.runtime.state_folder import StateFolder
from tests.e2e.attacks import rogue
from tests.e2e.attacks.certified import Party
from tests.e2e.attacks.standing import restarts


@pytest.fixture
async def rogues():
    """`await rogues(server, account)` logs a rogue in; all are gone after the test."""
    inside = []

    async def let_in(server, account, password=None):
        inside.append(await rogue.connect(server, account, password))
        return inside[-1]

    yield let_in
    for one in inside:
        await one.close()


@pytest.fixture
async def enter(market, rogues):
    """`await enter("mallory", Role.USER)` lets a party in, with a certificate if a role is given.

    Nobody honest is restarted meanwhile.
    """
    await asyncio.to_thread(market.wait_ready)
    inside = []
    started = restarts(market)

    async def let_in(name, role=None):
        inside.append(await Party.enter(market, rogues, name, role))
        return inside[-1]

    yield let_in
    for party in inside:
        party.leave()
    assert restarts(market) == started


@pytest.fixture
def site(tmp_path):
    """The state folder of a site; what runs there is stopped."""
    state = StateFolder(tmp_path / "site")
    yield state
    swarm.stop(state)


@pytest.fixture
def at_site(site, capsys):
    """Runs a verb at the site; its exit code, and what it prints and says."""

    def run(*arguments):
        capsys.readouterr()
        code = main([*arguments, "--state-dir", str(site.path)])
        told = capsys.readouterr()
        return code, " ".join((told.out + told.err).split())

    return run
