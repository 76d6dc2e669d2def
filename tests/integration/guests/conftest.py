"""A guest package of a test's own."""

import pytest

from tests.integration.guests.guest_package import MoodyPackage


@pytest.fixture
def moody(tmp_path):
    """A package that is well behaved until it is told otherwise."""
    return MoodyPackage(tmp_path / "site")
