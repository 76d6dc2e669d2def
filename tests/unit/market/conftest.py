"""The configuration of a market of two machines, for what is launched in virtual time."""

from pathlib import Path

import pytest

import ramp
from tests.tiny_market import tiny_market


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "market.toml"
    path.write_text(tiny_market({"alice": 1_000_000, "poor": 1}))
    return path


def wanted(**terms: object) -> ramp.RequestTemplate:
    return ramp.request(**{"cores": 8, "wall_time": "1h", "start": "+10min", "price": 70, **terms})
