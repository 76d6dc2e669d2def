"""Machines in the browser: a torus in space, one of four dimensions, the cores of a flat one, and prices over time."""

import pytest

import ramp
from tests.e2e.web.conftest import LAUNCHING, LIMIT_S
from tests.e2e.web.looks import LOOKS, look_at
from tests.tiny_market import launched, tiny_market

pytestmark = pytest.mark.e2e

TORI = """
[machines.blue]
plugin = "modelled"
cores = 131072
cores_per_node = 2
operating_system = "LINUX"
architecture = "powerpc"
torus = true
options = { machine = "bgl", load = 0.6, base_time_s = 432000 }

[machines.four]
plugin = "modelled"
cores = 1024
cores_per_node = 16
operating_system = "LINUX"
architecture = "x86_64"
torus = true
options = { machine = "angara-4x4x2x2", load = 0.5, base_time_s = 86400 }

[[resources]]
name = "blue"
machine = "blue"
start_price = 50
minimum_price = 40

[[resources]]
name = "four"
machine = "four"
start_price = 45
minimum_price = 30
"""


@pytest.fixture(scope="module")
def market():
    """The state folder of a market of a flat machine and two tori, with something bought on each."""
    deposits = {"alice": 1_000_000, "bob": 10}
    config = LAUNCHING + tiny_market(deposits, prices={"alpha": (40, 20)}, cores=512) + TORI
    with launched(config) as state:
        with ramp.connect(state, user="alice") as alice:
            for cores in (8, 600, 8192):
                wanted = ramp.request(cores=cores, wall_time="1h", start="+20min", price=70)
                assert alice.submit(wanted, rounds=2).committed, cores
        yield state


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_machines_are_looked_at(width, scheme, visitor, pages):
    page = visitor("alice", viewport={"width": width, "height": 900}, color_scheme=scheme)
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda told: faults.append(told.text) if told.type == "error" else None)
    page.goto(pages.url + "/")
    page.get_by_role("link", name="blue").click()
    page.get_by_role("heading", name="Layout").wait_for()
    page.locator("canvas[data-engine]").first.wait_for()
    holders = page.locator("section", has=page.get_by_role("heading", name="Layout"))
    rows = holders.locator("tbody tr")
    rows.first.wait_for()
    job = rows.first.locator("td").first.inner_text()
    page.get_by_label("Cables of").click()
    page.get_by_role("option", name=job, exact=True).click()
    found = look_at(page, "machine-blue", width, scheme)
    # the slider goes by the keyboard: in half an hour what was bought has begun
    page.get_by_role("listbox").wait_for(state="hidden")  # which gives its field the focus back as it closes
    page.get_by_role("slider").locator("[tabindex]").press("ArrowRight")
    page.get_by_text("in 0.5 h").wait_for()
    rows.filter(has_text="sold by the market").first.wait_for()
    found |= look_at(page, "machine-blue-later", width, scheme)
    page.goto(pages.url + "/machines/four")
    page.locator("canvas[data-engine]").first.wait_for()
    page.get_by_text("slice 1").first.wait_for()
    found |= look_at(page, "machine-four", width, scheme)
    page.goto(pages.url + "/machines/alpha")
    page.get_by_role("heading", name="Cores over 24 hours").wait_for()
    page.get_by_text("sold", exact=True).first.wait_for()
    found |= look_at(page, "machine-alpha", width, scheme)
    page.goto(pages.url + "/prices")
    page.locator("tbody tr", has_text="start price").first.wait_for()
    page.locator("tbody tr", has_text="request-").first.wait_for()
    assert set(page.locator("tbody tr td:nth-child(2)").all_inner_texts()) == {"alpha", "blue", "four"}
    found |= look_at(page, "prices", width, scheme)
    assert found == {}
    assert faults == []


@pytest.mark.full
def test_the_rounds_behind_a_price_and_a_machine_that_nobody_has(visitor, pages):
    alice, bob = visitor("alice"), visitor("bob")
    alice.goto(pages.url + "/prices")
    alice.locator("tbody tr", has_text="request-").first.wait_for()
    # a chart is a canvas: the pixel of a point is what ECharts says it is
    at = alice.evaluate(
        """() => {
          const chart = getElement([...document.querySelectorAll('.nicegui-echart')][0].id.slice(1)).chart;
          const index = chart.getOption().series.findIndex((each) => each.type === 'scatter');
          const pixel = chart.convertToPixel({seriesIndex: index}, chart.getOption().series[index].data[0]);
          const box = chart.getDom().getBoundingClientRect();
          return [box.x + pixel[0], box.y + pixel[1]];
        }"""
    )
    alice.mouse.click(*at)
    alice.get_by_role("heading", name="Auction rounds of request").wait_for()
    alice.get_by_role("link", name="Full auction").click()
    alice.get_by_role("heading", name="Request").first.wait_for()
    # another user sees start prices, and nothing of her auctions
    bob.goto(pages.url + "/prices")
    bob.locator("tbody tr", has_text="start price").first.wait_for()
    assert bob.locator("tbody tr", has_text="request-").count() == 0
    bob.goto(pages.url + "/machines/nobody")
    bob.get_by_text("Unknown seller nobody.").wait_for(timeout=1000 * LIMIT_S)
