"""The laboratory in the browser: results, runs by the keeper, traces that are played; and machines for the keeper."""

import contextlib
import json
import shutil
from pathlib import Path

import pytest

from tests.e2e.web.conftest import LIMIT_S, Pages
from tests.e2e.web.looks import LOOKS, look_at

pytestmark = pytest.mark.e2e

GOLDEN = Path(__file__).parents[2] / "golden" / "traces" / "bgl-first-fit.jsonl"
PICTURE = Path(__file__).parents[3] / "docs" / "_static" / "web-auction.png"
ROWS = [
    ("utilisation, fat shapes", "50", 48.1, "%", "agrees"),
    ("wait over windows", "-36.6", -27.5, "%", "DIFFERS"),
    ("slots at once <b>", "words only", 9.0, "slots", "no number"),
]


NEAREST_TAKEN = """() => {
  const canvas = document.querySelector('canvas[data-engine]');
  const scene = getElement(canvas.closest('.nicegui-scene').id.slice(1));
  const taken = [];
  scene.scene.traverse(each => { if (each.isMesh && each.material.opacity > 0.9) taken.push(each); });
  if (!taken.length) return false;
  const far = each => each.position.distanceTo(scene.camera.position);
  const nearest = taken.reduce((one, other) => far(one) < far(other) ? one : other);
  const at = nearest.position.clone().project(scene.camera), room = canvas.getBoundingClientRect();
  return [room.x + (at.x + 1) / 2 * room.width, room.y + (1 - at.y) / 2 * room.height];
}"""
"""The pixel of the nearest box that somebody has, once there is one."""


@pytest.fixture(scope="module")
def pages(market, tmp_path_factory):
    """The pages, with results of one experiment, a trace of Blue Gene/L and one of a flat machine."""
    results = tmp_path_factory.mktemp("laboratory")
    study = results / "study"
    study.mkdir()
    shutil.copy(PICTURE, study / "figure.png")
    (study / "points.csv").write_text("load,name\n10,b\n9.5,a\n100,c\n")
    (study / "columns.md").write_text("## points.csv\n\n| `load` | % | offered |\n")
    row = {"agrees_if": "within 5", "picture": "figure.png"}
    told = [{"what": what, "paper": paper, "ours": ours, "unit": unit, "verdict": verdict, "why": "because", **row}
            for what, paper, ours, unit, verdict in ROWS]  # fmt: skip
    told.append({**told[0], "what": "a row that no picture shows", "picture": ""})
    verdicts = {"agrees": 2, "DIFFERS": 1, "no number": 1}
    files = ["columns.md", "figure.png", "points.csv", "summary.json"]
    summary = {"experiment": "study", "seed": 1, "quick": True, "parameters": {}, "verdicts": verdicts, "files": files,
               "wall_s": 12.3, "comparison": told}  # fmt: skip
    (study / "summary.json").write_text(json.dumps(summary))
    shutil.copy(GOLDEN, results / "blue.jsonl")
    flat = [
        {"job_number": number, "submit_time": 100 * number, "start_time": 600 * number, "end_time": 600 * number + 3000,
         "nodes": str(4 + number)}
        for number in range(20)
    ]  # fmt: skip
    (results / "flat.jsonl").write_text("\n".join(map(json.dumps, [{"trace": 1, "machine": "flat:64"}, *flat])))
    found = Pages(market, "--results", str(results))
    found.results = results
    yield found
    found.stop()


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_laboratory_is_looked_at(width, scheme, visitor, pages):
    from playwright.sync_api import expect

    page = visitor("alice", viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(pages.url + "/laboratory")
    page.get_by_role("link", name="study").wait_for()
    found = look_at(page, "laboratory", width, scheme)
    assert page.get_by_role("button", name="Run").count() == 0
    page.get_by_role("link", name="study").click()
    page.get_by_role("img", name="Figure figure.png").wait_for()
    page.get_by_text("slots at once <b>").wait_for()
    page.get_by_text("a row that no picture shows").wait_for()
    cells = page.locator("section", has=page.get_by_role("heading", name="Tables")).locator("tbody tr td:first-child")
    expect(cells).to_have_text(["10", "9.5", "100"], timeout=1000 * LIMIT_S)
    page.get_by_role("columnheader", name="load (%)").click()
    expect(cells).to_have_text(["9.5", "10", "100"], timeout=1000 * LIMIT_S)
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    found |= look_at(page, "laboratory-study", width, scheme)
    page.goto(pages.url + "/laboratory/traces/blue.jsonl")
    page.get_by_text("0 of 128 units in use").or_(page.get_by_text("8 of 128 units in use")).wait_for()
    page.locator("canvas[data-engine]").first.wait_for()
    page.get_by_role("slider").locator("[tabindex]").focus()
    for second in range(1, 21):
        page.keyboard.press("ArrowRight")
        page.get_by_text(f"second {second}: ").wait_for()
    page.get_by_text("11 of 128 units in use by 3 jobs, waiting: 1 job").wait_for()
    page.locator("canvas[data-engine]").first.scroll_into_view_if_needed()
    page.mouse.move(*page.wait_for_function(NEAREST_TAKEN).json_value())
    page.get_by_text("Under the pointer: ").wait_for()
    found |= look_at(page, "laboratory-torus", width, scheme)
    page.get_by_role("button", name="Play").click()
    page.get_by_text("second 355: 0 of 128 units in use").wait_for()
    page.get_by_role("button", name="Play").wait_for()
    page.goto(pages.url + "/laboratory/traces/flat.jsonl")
    page.get_by_text("second 0: 4 processors in use by 1 job,").wait_for()
    page.locator("canvas").first.wait_for()
    found |= look_at(page, "laboratory-flat", width, scheme)
    assert found == {}


@pytest.mark.full
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_keeper_sees_all_machines_and_may_run(width, scheme, visitor, pages):
    keeper = visitor("keeper", viewport={"width": width, "height": 900}, color_scheme=scheme)
    keeper.get_by_text("3 of 3 machines answered").wait_for()
    machines = keeper.get_by_role("region", name="Machines")
    assert machines.locator("tbody tr").count() == 3
    found = look_at(keeper, "keeper", width, scheme)
    machines.get_by_role("link", name="alpha").click()
    keeper.get_by_role("heading", name="Cores over 24 hours").wait_for()
    keeper.goto(pages.url + "/laboratory")
    keeper.get_by_role("button", name="Run").wait_for()
    found |= look_at(keeper, "laboratory-keeper", width, scheme)
    assert found == {}


def runs_of(results):
    """Processes, by their number, of runs that write into a folder; their workers have no such command line."""
    found = set()
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (each / "cmdline").read_bytes().split(b"\0")
            if str(results).encode() in words and b"experiment" in words:
                found.add(each.name)
    return found


def start_whole_study(keeper, pages):
    """Run an experiment that takes minutes."""
    keeper.goto(pages.url + "/laboratory")
    keeper.get_by_role("button", name="Run").wait_for()
    keeper.get_by_label("Experiment", exact=True).click()
    keeper.get_by_role("option", name="units", exact=True).click()
    keeper.get_by_role("checkbox", name="Quick version").click()
    keeper.get_by_role("button", name="Run").click()
    keeper.get_by_role("button", name="Stop").wait_for()


def test_the_keeper_starts_and_stops_an_experiment_and_nobody_else_does(visitor, pages):
    keeper = visitor("keeper")
    start_whole_study(keeper, pages)
    # somebody else's page shows no such button, and what it sends in the keeper's name is heard by nobody
    bob = visitor("bob")
    bob.goto(pages.url + "/laboratory")
    bob.get_by_role("link", name="study").wait_for()
    assert bob.get_by_role("button", name="Stop").count() == 0
    client, stop = keeper.evaluate(
        "() => [window.clientId, +[...document.querySelectorAll('button')].find(each => "
        "each.innerText.includes('Stop')).id.slice(1)]"
    )
    told = keeper.evaluate("id => mounted_app.elements[id].events.map(each => each.listener_id)", stop)
    for listener in told:
        for page in (client, bob.evaluate("() => window.clientId")):
            bob.evaluate(
                "([id, client, listener]) => window.socket.emit('event',"
                " {id: id, client_id: client, listener_id: listener, args: [{}]})",
                [stop, page, listener],
            )
    bob.reload()
    bob.get_by_role("link", name="study").wait_for()
    keeper.reload()  # a run survives it
    keeper.get_by_text("simulations").wait_for()
    assert len(runs_of(pages.results)) == 1
    keeper.get_by_role("button", name="Stop").click()
    keeper.get_by_text("units: stopped").wait_for()
    assert runs_of(pages.results) == set()
    assert [each.name for each in pages.results.iterdir() if "units" in each.name] == []
