"""Markets for the end-to-end tests of whole swarms; the modules beside this one are found by their names."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from swarm_market import Market, in_hours, write_config

from ramp.servers.prosody import prosody_executable

_spec = importlib.util.spec_from_file_location("ledger_databases", Path(__file__).parents[2] / "contract/conftest.py")
_databases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_databases)
postgresql_server, postgresql_url = _databases.postgresql_server, _databases.postgresql_url


@pytest.fixture(scope="module")
def module_postgresql_url(postgresql_server):
    """As `postgresql_url`, for the tests of a module."""
    with _databases.own_schema(postgresql_server) as url:
        yield url


@pytest.fixture(scope="module", params=["embedded", "prosody"])
def kind(request):
    """Each kind of XMPP server; skips where it is not installed."""
    if request.param == "prosody" and prosody_executable() is None:
        pytest.skip("Prosody is not installed (apt-get install prosody)")
    return request.param


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


ON_PROSODY = (("bank", "agree FundsReserved", "after"), ("resource", "inform CancellationDone", "before"))
"""Kills that `make e2e` tries on Prosody: the bank between vote and decision, a resource before its last word."""


OF_CHANGES = (
    ("resource", "request Amendment", 1, "after"),
    ("bank", "agree AmendmentPosted", 1, "after"),
)
"""Kills that `make e2e` tries of growth by one order, which take long, on the embedded server."""

MOSTLY_LONG = ("test_slots_of_several_sellers_grow_by_one_order_all_or_none",)


def pytest_collection_modifyitems(items):
    """Of the kills `make e2e` tries every message once, before or after it, on the embedded server, and two on Prosody.

    The rest is long, and so is most of what is in `MOSTLY_LONG`. A crash between any two effects is the simulated
    swarm's (`make swarm`).
    """
    kills = [item for item in items if item.path.name == "test_swarm_kills.py"]
    mostly_long = [item for item in kills if item.function.__name__ in MOSTLY_LONG]
    others = [item for item in kills if item not in mostly_long]
    for number, item in enumerate(item for item in others if item.callspec.params["kind"] == "embedded"):
        if item.callspec.params["when"] != ("before", "after")[number // 2 % 2]:
            item.add_marker(pytest.mark.long)
    for item in others:
        params = item.callspec.params
        if params["kind"] == "prosody" and (params["role"], params["act"], params["when"]) not in ON_PROSODY:
            item.add_marker(pytest.mark.long)
    for item in mostly_long:
        params = item.callspec.params
        point = tuple(params[name] for name in ("role", "act", "nth", "when"))
        if params["kind"] == "prosody" or point not in OF_CHANGES:
            item.add_marker(pytest.mark.long)
