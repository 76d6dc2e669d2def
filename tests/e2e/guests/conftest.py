"""Markets with a package from outside the project; the modules that this one takes over are found by their names."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SWARM = Path(__file__).parents[1] / "swarm"
sys.path[:0] = [str(SWARM), str(Path(__file__).parents[2] / "integration" / "guests")]

from guest_package import MoodyPackage  # noqa: E402 (beside the other guests' tests)

_spec = importlib.util.spec_from_file_location("swarm_fixtures", SWARM / "conftest.py")
_fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)
new_market, module_market = _fixtures.new_market, _fixtures.module_market


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A package that whatever is launched finds."""
    package = MoodyPackage(tmp_path_factory.mktemp("package") / "site")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(package.folder))
        for name, value in package.environment.items():
            patch.setenv(name, value)
        yield package


@pytest.fixture
def moody(package):
    """The package, well behaved until it is told otherwise."""
    package.be()
    yield package
    package.be()
