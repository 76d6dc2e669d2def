"""Every page in both widths and schemes: axe-core's rules, no sideways scrolling, nothing from elsewhere; and how soon
an event is shown. `RAMP_SCREENSHOTS=FOLDER` keeps a picture of each."""

import pytest

import ramp
from tests.e2e.web.looks import LOOKS, look_at

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def bought(market):
    with ramp.connect(market, user="alice") as alice:
        return alice.submit(ramp.request(cores=8, wall_time="1h", start="+20min", price=70), rounds=3)


@pytest.fixture(scope="module")
def smaller(market):
    """A slot of alice that has become smaller."""
    with ramp.connect(market, user="alice") as alice:
        (unit,) = alice.submit(ramp.request(cores=16, wall_time="1h", start="+6h", price=70), rounds=1).units
        assert alice.resize(unit.agreement_id, cores=12)[0].done
        return unit


def paths(name, bought):
    if name == "keeper":
        return ["/"]
    return ["/", "/ask", "/requests", f"/requests/{bought.request_id}", "/reservations",
            f"/reservations/{bought.units[0].agreement_id}", "/account"]  # fmt: skip


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
@pytest.mark.parametrize("name", ["alice", "keeper"])
def test_everybody_can_use_every_page(name, width, scheme, visitor, pages, bought):
    page = visitor(name, viewport={"width": width, "height": 900}, color_scheme=scheme)
    foreign = []
    page.on("request", lambda asked: foreign.append(asked.url) if not asked.url.startswith(pages.url) else None)
    found = {}
    for path in paths(name, bought):
        page.goto(pages.url + path)
        page.locator("main h1").wait_for()
        page.locator("main section:visible").first.wait_for()
        stem = path.split("/")[1] + ("-one" if path.count("/") > 1 else "")
        found |= look_at(page, f"{name}-{stem or 'home'}", width, scheme)
    assert found == {}
    assert [url for url in foreign if not url.startswith(("data:", "blob:"))] == []


@pytest.mark.full
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_everybody_can_change_a_size(width, scheme, visitor, pages, smaller):
    page = visitor("alice", viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(f"{pages.url}/reservations/{smaller.agreement_id}")
    page.get_by_role("cell", name="original", exact=True).wait_for()
    page.get_by_role("button", name="Resize").click()
    page.get_by_label("Cores", exact=True).fill("8")
    page.get_by_role("button", name="Preview the change").click()
    page.get_by_role("button", name="Apply the change").wait_for()
    assert look_at(page, "alice-reservation-size", width, scheme) == {}


def test_the_keyboard_gets_everywhere(visitor, pages, bought):
    page = visitor("alice")
    page.goto(pages.url + "/ask")
    page.get_by_role("heading", name="The request").wait_for()
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.innerText")
        )
    wanted = ("Market", "Requests", "Sign out", "Total cores", "Complete by", "Add a unit", "Quote")
    assert [name for name in wanted if not any(name in each for each in reached)] == []
