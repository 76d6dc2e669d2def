"""Rogue clients, and markets to set them on; the modules beside this one are found by their names."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SWARM = Path(__file__).parents[1] / "swarm"
sys.path[:0] = [str(Path(__file__).parent), str(SWARM)]

import rogue  # noqa: E402 (beside this file)
from certified import Buyer  # noqa: E402
from standing import restarts  # noqa: E402

from ramp.cli.main import main  # noqa: E402
from ramp.client import swarm  # noqa: E402
from ramp.model.seal import Role  # noqa: E402
from ramp.runtime.state_folder import StateFolder  # noqa: E402

_spec = importlib.util.spec_from_file_location("swarm_fixtures", SWARM / "conftest.py")
_fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)
new_market, module_market = _fixtures.new_market, _fixtures.module_market


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
    """`await enter("rich", 100_000)` lets a certified buyer with an account in; nobody honest is restarted."""
    inside = []
    started = restarts(market)

    async def let_in(name, money=0):
        party = await Buyer.enter(market, rogues, name, Role.USER)
        inside.append(party)
        party.open_account(money)
        return party

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
