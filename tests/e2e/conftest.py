"""XMPP servers and markets in processes for the end-to-end tests, and how these tests are run.

`make e2e` runs every flow, server and batch system once; a test that is marked `full` is left to `make e2e-full`, which
runs all of them. What is parametrised by the kind of server runs on Prosody in the full tier only, unless its file says
otherwise. Nothing is tried again: a test waits for events, with limits of minutes, and asserts nothing about times.
"""

import itertools
from pathlib import Path

import pytest

from ramp.servers.embedded import EmbeddedServer
from ramp.servers.process import ServerProcess
from ramp.servers.prosody import ProsodyServer, prosody_executable
from tests.e2e.swarm.swarm_market import Market, in_hours, write_config

KINDS = ("embedded", pytest.param("prosody", marks=pytest.mark.full))


def make_server(kind: str, state_dir: Path) -> ServerProcess:
    """A server of a kind, not started; skips the test where that kind is not installed."""
    if kind == "prosody":
        if prosody_executable() is None:
            pytest.skip("Prosody is not installed (apt-get install prosody)")
        return ProsodyServer(state_dir)
    return EmbeddedServer(state_dir)


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    """Each kind of XMPP server, for markets that start their own; skips where it is not installed."""
    if request.param == "prosody" and prosody_executable() is None:
        pytest.skip("Prosody is not installed (apt-get install prosody)")
    return request.param


@pytest.fixture(params=KINDS)
def xmpp_server(request, tmp_path):
    """A running XMPP server of each kind; the test may kill and restart it."""
    with make_server(request.param, tmp_path / "xmpp") as server:
        yield server


@pytest.fixture(scope="module", params=KINDS)
def shared_server(request, tmp_path_factory):
    """A running XMPP server of each kind for all tests of a module, none of which hurts it."""
    with make_server(request.param, tmp_path_factory.mktemp("server") / "xmpp") as server:
        yield server


@pytest.fixture
def embedded_server(tmp_path):
    """A running embedded server, for tests that need no second kind."""
    with make_server("embedded", tmp_path / "xmpp") as server:
        yield server


@pytest.fixture
def prosody_server(tmp_path):
    """A running Prosody; skips where it is not installed."""
    with make_server("prosody", tmp_path / "xmpp") as server:
        yield server


def _markets(new_folder):
    """Makes markets, not launched, from their configuration, each in a folder of its own; ends all of them."""
    markets = []

    def make(*, armed=False, folder=None, **configuration):
        folder = folder or new_folder()
        markets.append(Market(write_config(folder / "swarm.toml", **configuration), folder / "state", armed=armed))
        return markets[-1]

    yield make
    for market in markets:
        market.end()


@pytest.fixture
def new_market(tmp_path_factory):
    """`new_market(**configuration)` makes a market, not launched; all are ended after the test."""
    yield from _markets(lambda: tmp_path_factory.mktemp("market"))


@pytest.fixture(scope="module")
def module_market(tmp_path_factory):
    """As `new_market`, for markets that the tests of a module share."""
    yield from _markets(lambda: tmp_path_factory.mktemp("market"))


@pytest.fixture(scope="module")
def hours():
    """When the windows of a module's tests begin, in hours from now."""
    return itertools.count(1, 2)


@pytest.fixture
def begin(market, hours):
    """A window of its own on the machines of a module's `market`, where everybody is up."""
    market.wait_ready()
    return in_hours(next(hours))
