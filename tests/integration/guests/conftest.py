"""A guest package of a test's own; the module beside this one is found by its name."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from guest_package import MoodyPackage


@pytest.fixture
def moody(tmp_path):
    """A package that is well behaved until it is told otherwise."""
    return MoodyPackage(tmp_path / "site")
