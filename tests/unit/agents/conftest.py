"""A market of one buyer and one seller, of which nothing runs."""

from __future__ import annotations

import pytest

from ramp.runtime.configuration.file import load_config
from ramp.runtime.state_folder import StateFolder

MARKET = """
[[users]]
name = "alice"
deposit = 1000
[machines.m]
plugin = "steady"
cores = 64
[[resources]]
name = "m1"
machine = "m"
start_price = 20
minimum_price = 10
"""


@pytest.fixture
def small_market(tmp_path):
    """Its configuration and its state folder."""
    config = tmp_path / "market.toml"
    config.write_text(MARKET, "utf-8")
    state = StateFolder(tmp_path / "state")
    state.prepare()
    return load_config(config), state
