"""Signing in with an account of the site, in a browser, at a provider on this computer."""

import pytest

from tests.e2e.web.conftest import Pages
from tests.unit.web.test_openid import SECRET, Provider

pytestmark = pytest.mark.e2e

FILE = """\
issuer = "{issuer}"
client_id = "ramp"
secret_file = "secret"
claim = "email"

[users]
"ann@example.org" = "alice"
"""


@pytest.fixture(scope="module")
def pages(market, tmp_path_factory):
    folder = tmp_path_factory.mktemp("openid")
    provider = Provider()
    (folder / "secret").touch(mode=0o600)
    (folder / "secret").write_text(SECRET)
    (folder / "openid.toml").write_text(FILE.format(issuer=provider.issuer))
    found = Pages(market, "--openid", str(folder / "openid.toml"))
    yield found
    found.stop()
    provider.end()


def test_an_account_of_the_site_signs_in_and_out(visitor, pages):
    page = visitor()
    page.goto(pages.url)
    page.get_by_role("link", name="Sign in with your site's account").click()
    page.get_by_role("heading", name="Sign in as alice").wait_for()
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Sellers").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="Sign in with your site's account").wait_for()
