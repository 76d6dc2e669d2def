"""A market that invites, and the folder of a site; the module beside this one is found by its name."""

import sys
from pathlib import Path

import pytest

from ramp.runtime.state_folder import StateFolder

sys.path.insert(0, str(Path(__file__).parent))

from inviting_market import Market, market_in


@pytest.fixture
def market(tmp_path: Path) -> Market:
    return market_in(tmp_path / "market")


@pytest.fixture
def site(tmp_path: Path) -> StateFolder:
    return StateFolder(tmp_path / "site")
