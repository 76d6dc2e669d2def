"""A market of one buyer and one seller, of which nothing runs."""

import pytest

from ramp.runtime.configuration.file import load_config
from ramp.runtime.state_folder import StateFolder
from tests.tiny_market import tiny_market

MARKET = tiny_market({"alice": 1_000}, prices={"m1": (20, 10)})


@pytest.fixture
def small_market(tmp_path):
    """Its configuration and its state folder."""
    config = tmp_path / "market.toml"
    config.write_text(MARKET, "utf-8")
    state = StateFolder(tmp_path / "state")
    state.prepare()
    return load_config(config), state
