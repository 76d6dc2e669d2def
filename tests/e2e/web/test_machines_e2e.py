"""Machines in the browser: a torus in space, one of four dimensions, the cores of a flat one, and prices over time."""

import pytest

import ramp
from tests.e2e.web.conftest import CHROMIUM, LAUNCHING, LIMIT_S
from tests.e2e.web.looks import LOOKS, look_at
from tests.tiny_market import launched, tiny_market

pytestmark = pytest.mark.e2e

TORI = "".join(
    f"""
[machines.{name}]
plugin = "modelled"
cores = {cores}
cores_per_node = {per_node}
operating_system = "LINUX"
architecture = "{architecture}"
torus = true
options = {{ {options} }}

[[resources]]
name = "{name}"
machine = "{name}"
start_price = {price}
minimum_price = 30
"""
    for name, cores, per_node, architecture, price, options in (
        ("blue", 131072, 2, "powerpc", 50, 'machine = "bgl", load = 0.6, base_time_s = 432000'),
        ("four", 1024, 16, "x86_64", 45, 'machine = "angara-4x4x2x2", load = 0.5, base_time_s = 86400'),
    )
)


SORTED_CORES = """() => {
  const cells = [...document.querySelectorAll('[aria-label=Sellers] tbody td:nth-child(6)')];
  const cores = cells.map((each) => Number(each.innerText.replace(/\\D/g, '')));
  const lengths = new Set(cores.map((each) => String(each).length));
  return lengths.size > 1 && cores.every((each, at) => !at || cores[at - 1] <= each);
}"""
"""Whether the machines are in the order of their cores, which have several lengths: as texts they sort otherwise."""

WHERE_SOMEBODY_IS = """(canvas) => {
  const chart = getElement(Number(canvas.closest('[id^=c]').id.slice(1))).chart;
  const number = chart.getOption().series.findIndex((each) => each.name !== '(free)');
  const series = chart.getOption().series[number];
  return [series.name, ...chart.convertToPixel({seriesIndex: number}, series.data[0].value)];
}"""
"""Who has the first unit that somebody has, and where it is in the picture of the slices."""


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
    page.get_by_role("listbox").wait_for(state="hidden")  # which gives its field the focus back as it closes
    found = look_at(page, "machine-blue", width, scheme)
    # the slider goes by the keyboard: in half an hour what was bought has begun
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
    page.locator("tbody tr").first.wait_for()
    found |= look_at(page, "prices", width, scheme)
    assert found == {}
    assert faults == []


@pytest.mark.full
def test_a_sale_is_seen_by_all_without_its_buyer_and_a_machine_that_nobody_has(visitor, pages):
    bob = visitor("bob")
    bob.goto(pages.url + "/prices")
    rows = bob.get_by_role("region", name="Latest sales").locator("tbody tr")
    rows.first.wait_for()
    seller = rows.first.locator("td").nth(1).inner_text()
    assert "alice" not in bob.locator("main").inner_text()
    bob.get_by_label("Machines").click()
    bob.get_by_role("option", name=seller, exact=True).click()
    bob.wait_for_function(
        "(seller) => [...document.querySelectorAll('tbody td:nth-child(2)')].every((e) => e.innerText === seller)",
        arg=seller,
    )
    bob.goto(pages.url + "/machines/nobody")
    bob.get_by_text("Unknown seller nobody.").wait_for(timeout=1000 * LIMIT_S)


def test_a_table_sorts_numbers_and_is_searched(visitor, pages):
    page = visitor("alice")
    page.goto(pages.url + "/")
    rows = page.get_by_role("region", name="Sellers").locator("tbody tr")
    rows.first.wait_for()
    page.get_by_role("columnheader", name="of", exact=True).click()
    page.wait_for_function(SORTED_CORES)
    page.get_by_label("Search").fill("alph")
    page.get_by_role("link", name="blue").wait_for(state="detached")
    page.get_by_role("link", name="alpha").wait_for()
    page.get_by_role("link", name="Ask here").click()
    page.get_by_text("Only at these sites or sellers").wait_for()
    assert page.get_by_label("Only at these sites or sellers").input_value().startswith("alpha@")


def test_the_table_and_the_pictures_of_a_torus_point_to_each_other(visitor, pages):
    page = visitor("alice")
    page.goto(pages.url + "/machines/blue")
    layout = page.locator("section", has=page.get_by_role("heading", name="Layout"))
    rows = layout.locator("tbody tr")
    rows.first.hover()
    name = rows.first.locator("td").first.inner_text()
    layout.get_by_text(f"Under the pointer: {name}, ").wait_for()
    assert layout.locator("tr.ramp-marked td").first.inner_text() == name
    page.get_by_role("heading", name="Machine blue").hover()
    layout.get_by_text("Point at a unit or a row").wait_for()
    slices = layout.locator("canvas:not([data-engine])")
    slices.scroll_into_view_if_needed()
    name, x, y = slices.evaluate(WHERE_SOMEBODY_IS)
    box = slices.bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    layout.get_by_text(f"Under the pointer: {name}, ").wait_for()
    assert layout.locator("tr.ramp-marked td").first.inner_text() == name


def test_without_webgl_a_torus_is_drawn_as_slices(chromium, pages):
    flags = ["--no-sandbox", "--disable-gpu", "--disable-3d-apis"]
    browser = chromium.browser_type.launch(executable_path=CHROMIUM, args=flags)
    try:
        page = browser.new_page()
        page.set_default_timeout(1000 * LIMIT_S)
        faults = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(pages.link("--user", "alice"))
        page.click("button")
        page.get_by_role("heading", name="Market").wait_for()
        page.goto(pages.url + "/machines/blue")
        layout = page.locator("section", has=page.get_by_role("heading", name="Layout"))
        layout.locator("canvas").wait_for()
        assert page.locator("canvas[data-engine]").count() == 0
        assert faults == []
    finally:
        browser.close()
