"""Markets for the end-to-end tests of whole swarms; the modules beside this one are found by their names."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from swarm_market import Market, in_hours, write_config

_spec = importlib.util.spec_from_file_location("ledger_databases", Path(__file__).parents[2] / "contract/conftest.py")
_databases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_databases)
postgresql_server, postgresql_url = _databases.postgresql_server, _databases.postgresql_url


@pytest.fixture(scope="module")
def module_postgresql_url(postgresql_server):
    """As `postgresql_url`, for the tests of a module."""
    with _databases.own_schema(postgresql_server) as url:
        yield url


@pytest.fixture
def new_market(tmp_path):
    """`new_market(**configuration)` makes a market, not launched; all are ended after the test."""
    markets = []

    def make(*, armed=False, **configuration):
        number = len(markets)
        config = write_config(tmp_path / f"swarm{number}.toml", **configuration)
        markets.append(Market(config, tmp_path / f"state{number}", armed=armed))
        return markets[-1]

    yield make
    for market in markets:
        market.end()


@pytest.fixture(scope="module")
def module_market(tmp_path_factory):
    """As `new_market`, for markets that the tests of a module share."""
    markets = []

    def make(*, armed=False, **configuration):
        folder = tmp_path_factory.mktemp("market")
        markets.append(Market(write_config(folder / "swarm.toml", **configuration), folder / "state", armed=armed))
        return markets[-1]

    yield make
    for market in markets:
        market.end()


@pytest.fixture(scope="module")
def hours():
    """When the windows of a module's tests begin, in hours from now."""
    return itertools.count(1, 2)


@pytest.fixture
def begin(market, hours):
    """A window of its own on the machines of a module's `market`, where everybody is up."""
    market.wait_ready()
    return in_hours(next(hours))
