"""A market that invites, and the folder of a site."""

from pathlib import Path

import pytest

from ramp.runtime.state_folder import StateFolder
from tests.unit.joining.inviting_market import Market, market_in


@pytest.fixture
def market(tmp_path: Path) -> Market:
    return market_in(tmp_path / "market")


@pytest.fixture
def site(tmp_path: Path) -> StateFolder:
    return StateFolder(tmp_path / "site")
