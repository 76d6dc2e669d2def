"""Which users resources that launch jobs deal with: `[accounts]`, its line for everybody, and who has no line."""

from pathlib import Path

import pytest

from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import SwarmConfig
from ramp.shipped_files import find_config
from tests.tiny_market import tiny_market

MARKET = '[launching]\nexecutor = "local"\n[accounts]\n%s\n'
SELLERS = tiny_market({"alice": 1}, prices={"north": (30, 10), "elsewhere": (30, 10)}) + 'executor = "none"\n'
"""The last one, `elsewhere`, launches nothing."""


def market(folder: Path, accounts: str) -> SwarmConfig:
    path = folder / "market.toml"
    path.write_text(MARKET % accounts + SELLERS)
    return load_config(path)


def test_a_user_without_a_line_is_refused_by_resources_that_launch_and_by_no_others(tmp_path: Path) -> None:
    config = market(tmp_path, 'alice = "@own"')
    assert config.refusing("alice") == ()
    assert config.refusing("carol") == ("north",)


def test_one_line_stands_for_everybody_of_the_markets_domain(tmp_path: Path) -> None:
    config = market(tmp_path, '"*" = "@own"')
    assert config.refusing("carol") == ()
    terms = config.resource("north").launching
    assert (terms.account("carol@localhost"), terms.account("carol@west.example")) == ("@own", "")
    theirs = market(tmp_path, '"*@west.example" = "guests"').resource("north").launching
    assert (theirs.account("carol@localhost"), theirs.account("carol@west.example")) == ("", "guests")


@pytest.mark.parametrize("name", ["quickstart", "torus"])
def test_whoever_is_added_to_a_shipped_market_of_simulated_machines_may_buy_everywhere(name: str) -> None:
    config = load_config(find_config(name))
    for user in ("alice", "bob", "carol"):
        assert config.refusing(user) == ()
