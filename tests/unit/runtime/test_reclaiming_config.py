"""How a resource's file says when it takes cores back and what the right is worth, and what is told of a wrong word."""

from __future__ import annotations

from pathlib import Path

import pytest

from ramp.errors import ConfigurationError
from ramp.protocol.reclaiming.asking import Precedence
from ramp.protocol.resource.reclaiming.policy import ReclaimPolicy
from ramp.runtime.config_file import load_config

MARKET = """
[[users]]
name = "alice"
[machines.m]
cores = 64
[[resources]]
name = "first"
machine = "m"
start_price = 30
minimum_price = 10
[[resources]]
name = "second"
machine = "m"
start_price = 30
minimum_price = 10
{keys}
"""


def policies(folder: Path, keys: str) -> list[ReclaimPolicy]:
    (folder / "market.toml").write_text(MARKET.format(keys=keys), "utf-8")
    return [each.reclaiming for each in load_config(folder / "market.toml").resources]


@pytest.mark.parametrize(
    ("keys", "policy"),
    [
        ("", ReclaimPolicy(Precedence.RUNNING, 0)),
        ('reclaim = "pra"', ReclaimPolicy(Precedence.RUNNING, 0)),
        ('reclaim = "pwa"', ReclaimPolicy(Precedence.WAITING, 0)),
        ("reclaim_discount = 25", ReclaimPolicy(Precedence.RUNNING, 25)),
        ('reclaim = "pwa"\nreclaim_discount = 0', ReclaimPolicy(Precedence.WAITING, 0)),
        ('reclaim = "pwa"\nreclaim_discount = 99', ReclaimPolicy(Precedence.WAITING, 99)),
    ],
)
def test_each_resource_has_its_own(tmp_path: Path, keys: str, policy: ReclaimPolicy) -> None:
    assert policies(tmp_path, keys) == [ReclaimPolicy(Precedence.RUNNING, 0), policy]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ('reclaim = "PWA"', 'reclaim: \'PWA\' is wrong; right would be "pra" or "pwa"'),
        ('reclaim = ""', 'reclaim: \'\' is wrong; right would be "pra" or "pwa"'),
        ("reclaim = true", 'reclaim: True is wrong; right would be "pra" or "pwa"'),
        ('reclaim = ["pwa"]', 'reclaim: [\'pwa\'] is wrong; right would be "pra" or "pwa"'),
        ("reclaim_discount = 100", "reclaim_discount: 100 is wrong; right would be 0 to 99 percent"),
        ("reclaim_discount = -1", "reclaim_discount: -1 is wrong; right would be a whole number from 0"),
        ("reclaim_discount = 2.5", "reclaim_discount: 2.5 is wrong; right would be a whole number from 0"),
        ("reclaim_discount = true", "reclaim_discount: True is wrong; right would be a whole number from 0"),
        ('reclaim_discount = "10%"', "reclaim_discount: '10%' is wrong; right would be a whole number from 0"),
        ('reclame = "pwa"', "reclame: no such key; did you mean 'reclaim'?"),
    ],
)
def test_file_place_value_and_what_would_be_right_are_named(tmp_path: Path, keys: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        policies(tmp_path, keys)
    assert str(tmp_path / "market.toml") in str(caught.value)
    assert f"resources[2].{told}" in str(caught.value)


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        policies(tmp_path, 'reclaim = "never"\nreclaim_discount = 100')
    assert "'never'" in str(caught.value)
    assert "100 is wrong" in str(caught.value)


@pytest.mark.parametrize(
    ("price", "discount", "granted"),
    [(70, 0, 70), (70, 10, 63), (71, 10, 64), (3, 50, 2), (1, 99, 1), (100, 99, 1), (101, 99, 2)],
)
def test_the_right_lowers_a_price_by_so_many_percent_rounded_up(price: int, discount: int, granted: int) -> None:
    policy = ReclaimPolicy(Precedence.WAITING, discount)
    assert policy.price(price, granted=True) == granted
    assert policy.price(price, granted=False) == price
