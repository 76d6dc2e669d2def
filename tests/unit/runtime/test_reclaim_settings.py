"""What a configuration says of cores that a resource takes back: its keys, their defaults, and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from ramp.errors import ConfigurationError
from ramp.protocol.reclaiming.asking import Precedence
from ramp.protocol.resource.reclaiming.policy import ReclaimPolicy
from ramp.runtime.config_file import load_config
from tests.tiny_market import tiny_market

MARKET = tiny_market({"alice": 100})
KEY = "minimum_price = "


def policy(tmp_path: Path, lines: str) -> ReclaimPolicy:
    path = tmp_path / "market.toml"
    path.write_text(MARKET.replace(KEY, f"{lines}\n{KEY}", 1))
    return load_config(path).resources[0].reclaiming


def test_the_keys_of_a_resource(tmp_path: Path) -> None:
    assert policy(tmp_path, "") == ReclaimPolicy(Precedence.RUNNING, 0, None)
    told = 'reclaim = "pwa"\nreclaim_discount = 5\nreclaim_compensation_max = 0'
    assert policy(tmp_path, told) == ReclaimPolicy(Precedence.WAITING, 5, 0)


@pytest.mark.parametrize("value", ["-1", "1000001", '"much"'])
def test_a_compensation_that_no_right_may_ask_is_none_to_pay(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigurationError, match="reclaim_compensation_max"):
        policy(tmp_path, f"reclaim_compensation_max = {value}")
