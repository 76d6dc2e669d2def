"""`ramp smap` on a running market: the map in a snapshot that a live machine's plug-in made."""

import json
import re

import pytest

from ramp.cli.main import main
from ramp.model.contents import DirectoryListing, MachineStatus
from ramp.model.instant import DAY, HOUR, MINUTE, from_iso
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Slot
from ramp.plugins.interface import PluginSettings
from ramp.runtime.guests.questions import snapshot_text
from simulation.plots.machine3d import BOOKED_COLOR, PALETTE
from simulation.resource.modelled import open_plugin
from simulation.resource.steady import SteadyMachine

NOW = from_iso("2026-11-21T08:00:00Z")


@pytest.fixture(scope="module")
def snapshot() -> str:
    settings = PluginSettings("angara1", 512, 16, NOW, {"machine": "angara-4x4x2", "load": 0})
    machine = open_plugin(settings)
    for key, nodes in (("held", 4), ("sold", 8)):
        unit = RequestUnit(1, 70, NOW + 2 * HOUR, TotalCores(nodes * 16), NOW, 2 * HOUR)
        slot = machine.quote(unit, NOW)
        assert isinstance(slot, Slot)
        machine.hold(key, unit, slot, NOW + HOUR, NOW)
    machine.confirm("sold", NOW)
    return snapshot_text(machine.snapshot(NOW + MINUTE, DAY))


@pytest.fixture
def smap(agent, monkeypatch, capsys):
    """Runs `ramp smap NAME` against a market whose resource answers with a snapshot."""

    def run(name: str, answer: str, *options: str) -> tuple[int, str, str]:
        names = ("angara1@localhost", "cluster1@localhost")
        listing = DirectoryListing("query-1", "resource-trader", names)
        status = MachineStatus("query-2", answer)
        _, market = agent([listing], [status])
        monkeypatch.setattr("simulation.cli.live.open_market", lambda state, user: market)
        code = main(["smap", name, *options])
        return code, *capsys.readouterr()

    return run


def test_holds_and_sales_are_on_the_map_and_the_load_is_a_line(smap, snapshot) -> None:
    code, text, _ = smap("angara1", snapshot, "--color", "never")
    assert code == 0
    # hold and sale take 12 of 32 nodes for two of 24 hours
    assert re.search(r" - - +- +market +angara1-[0-9a-f]{6}-1 +H +0:00 +4 ", text), "no job number"
    assert re.search(r"market +angara1-[0-9a-f]{6}-2 +RV +0:00 +8 ", text)
    assert re.search(r"projected load over 1 d: \S{24} \(mean 3\.1%\)", text)


def test_holds_have_another_colour(smap, snapshot) -> None:
    _, text, _ = smap("angara1", snapshot, "--color", "always")
    held, sold = (next(line for line in text.splitlines() if name in line) for name in (" H ", " RV "))
    assert "\x1b[7m" in held, "reverse video"
    assert "\x1b[3" in sold


def test_the_table_of_reservations(smap, snapshot) -> None:
    _, text, _ = smap("angara1", snapshot, "-D", "r")
    # booked at 8 o'clock for two hours; the letters are those of the map
    assert re.search(r"A +angara1-[0-9a-f]{6}-1 +HELD +2026-11-21T08:00:00Z +2026-11-21T10:00:00Z +4 ", text)
    assert re.search(r"B +angara1-[0-9a-f]{6}-2 +ACTIVE +2026-11-21T08:00:00Z +2026-11-21T10:00:00Z +8 ", text)


def test_the_map_as_json(smap, snapshot) -> None:
    _, text, _ = smap("angara1", snapshot, "--json")
    shown = json.loads(text)
    assert shown["machine"] == "angara1"
    assert [(job["state"], job["size"]) for job in shown["jobs"]] == [("H", 4), ("RV", 8)]
    assert {job["job_number"] for job in shown["jobs"]} == {None}
    assert shown["time"] == "2026-11-21T08:01:00Z"
    assert shown["allocated"] == 0, "nobody's job runs"
    assert len(shown["projected_load"]) == 24
    assert shown["projected_load"][0]["load"] == pytest.approx(12 / 32)


def test_a_picture_holds_the_load_too(smap, snapshot, tmp_path) -> None:
    path = tmp_path / "map.svg"
    code, _, _ = smap("angara1", snapshot, "--svg", str(path))
    assert code == 0
    text = path.read_text("utf-8")
    assert text.startswith("<?xml")
    # 8 sold nodes with three faces each, a square in the legend and a bar below, all in the market's colour
    assert len(re.findall(f"fill: {BOOKED_COLOR}", text)) >= 8
    assert len(re.findall(r"fill: url\(#", text)) >= 4 * 3, "the held nodes are hatched"
    assert BOOKED_COLOR not in PALETTE


def test_a_flat_machine_has_no_map(smap) -> None:
    flat = snapshot_text(SteadyMachine("cluster1", 64, 0.5).snapshot(NOW, DAY))
    code, _, error = smap("cluster1", flat)
    assert code == 2
    assert "ramp qstat cluster1" in error


def test_a_name_that_nobody_has_is_told_at_once(smap, snapshot) -> None:
    code, _, error = smap("angra1", snapshot)
    assert code == 2
    assert "did you mean 'angara1'?" in error


def test_without_a_market_it_says_so(tmp_path, capsys) -> None:
    assert main(["smap", "nosuch", "--state-dir", str(tmp_path)]) != 0
    said = capsys.readouterr().err
    assert "no market is running" in said
    assert "bgl" in said  # a name that one may have meant
