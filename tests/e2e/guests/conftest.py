"""A package from outside the project that whatever is launched finds."""

import pytest

from tests.integration.guests.guest_package import MoodyPackage


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
