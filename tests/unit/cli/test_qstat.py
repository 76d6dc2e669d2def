"""Tables of jobs and maps of a machine: `ramp qstat`, `fake-qstat`, `fake-qrstat` and `smap` on a snapshot."""

import json
import re

import pytest

from ramp.batch.gridengine.questions import read_queues, read_reservations
from ramp.cli.main import main
from ramp.model.contents import DirectoryListing, MachineStatus
from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, from_iso
from ramp.model.offer import Refusal
from ramp.model.request import RequestUnit, TotalCores
from ramp.plugins.interface import PluginSettings
from ramp.protocol.events import MachineAsked
from ramp.runtime import clock
from ramp.runtime.guests.questions import snapshot_text
from simulation.plots.machine3d import BOOKED_COLOR, PALETTE
from simulation.resource.fake_qstat import FakeQstat
from simulation.resource.modelled import open_plugin
from simulation.resource.steady import SteadyMachine
from tests.slots import quoted
from tests.tiny_market import tiny_market

JOB = {"job": 796, "cores": 16, "start": "2026-11-21T08:00:00.777423Z", "end": "2026-11-21T11:00:00.777423Z",
       "submitted": "2026-11-21T07:00:00.777423Z", "user": 15}  # fmt: skip
SNAPSHOT = {
    "resource": "ricc3",
    "source": "log",
    "time": "2026-11-21T09:00:00Z",
    "machine_time_s": 500000.0,
    "cores": 8192,
    "cores_busy": 8011,
    "load": 0.978,
    "running": [{**JOB, "job": number} for number in range(796, 816)],
    "queued": [],
    "running_total": 418,
    "queued_total": 1384,
    "reservations": [
        {"reservation_id": "ricc3-1", "key": "offer-1", "cores": 64, "start": "2026-11-21T10:00:00Z",
         "end": "2026-11-21T11:00:00Z", "firm": False, "held_until": "2026-11-21T09:02:00Z"},
    ],
    "projected_load": [{"time": "2026-11-21T09:00:00Z", "load": 1.0}, {"time": "2026-11-21T10:00:00Z", "load": 0.0}],
}  # fmt: skip


@pytest.fixture
def qstat(agent, monkeypatch, ramp):
    """Runs `ramp qstat ricc3` against a machine that answers with a snapshot."""

    def run(*options, **changes):
        listing = DirectoryListing("query-1", "resource-trader", ("ricc3@localhost",))
        status = MachineStatus("query-2", json.dumps({**SNAPSHOT, **changes}))
        fake, market = agent([listing], [status])
        monkeypatch.setattr("ramp.cli.verbs.machines.open_market", lambda state, user: market)
        return fake, ramp("qstat", "ricc3", *options).out

    return run


def test_tables_name_totals_and_what_was_cut(qstat):
    fake, text = qstat("--horizon", "2h")
    assert fake.heard[1] == MachineAsked("", "ricc3", 2 * HOUR)
    assert "ricc3 at 2026-11-21T09:00:00Z: 8011 of 8192 cores busy (97.8%); its queue replays a workload log" in text
    assert "projected load over 2 h: █▁ (mean 50.0%)" in text
    assert "Running: 418 jobs, end projected; the first 10 are shown (--all shows more)" in text
    assert "Queued: 1384 jobs, start and end projected; too many for one answer, none is listed" in text
    assert "held until 2026-11-21T09:02:00Z" in text
    assert "2026-11-21T11:00:00Z" in text
    assert " 805 " in f" {text}".replace("\n", "\n ")
    assert "806" not in text  # the eleventh


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": "synthetic"}, "its queue is a synthetic workload (no log on this machine)"),
        ({"source": "live"}, "its queue is the machine's own"),
        ({"source": "synthetic", "map": {}}, "a live torus, whose own users submit synthetic jobs"),
        ({"source": "log", "map": {}}, "a live torus, whose own users submit the jobs of a workload log"),
    ],
)
def test_it_says_what_drives_the_queue(qstat, changes, words):
    assert qstat(**changes)[1].splitlines()[0].endswith(words)


def test_all_jobs_that_came_are_shown_when_asked_for(qstat):
    _, text = qstat("--all")
    assert "the first 20 are shown" in text
    assert "815" in text


def test_json_is_the_snapshot_itself(qstat):
    assert json.loads(qstat("--json")[1]) == SNAPSHOT


HELD = {**SNAPSHOT["reservations"][0], "reservation_id": "ricc3-2", "key": "offer-2/x"}
BUSY = {
    **SNAPSHOT,
    "cores_busy": 80,
    "running": [JOB, {**JOB, "job": 797, "user": None}],
    "queued": [{**JOB, "job": 798, "user": "eve"}],
    "running_total": 2,
    "queued_total": 3,
    "reservations": [
        {**HELD, "reservation_id": "ricc3-1", "key": "offer-1", "cores": 48, "start": "2026-11-21T08:30:00Z",
         "firm": True, "held_until": None},
        HELD,
    ],
}  # fmt: skip


@pytest.fixture
def printed(agent, monkeypatch, capsys):
    """Runs a verb, three at most, against a machine that answers with a snapshot; its output and its complaints."""
    listing = DirectoryListing("query-1", "resource-trader", ("ricc3@localhost",))
    _, market = agent(*([listing], [MachineStatus("query-2", json.dumps(BUSY))]) * 3)

    def run(*arguments, code=0):
        monkeypatch.setattr("simulation.cli.gridengine.open_market", lambda state, user: market)
        assert main([arguments[0], "ricc3", *arguments[1:]]) == code
        return capsys.readouterr()

    return run


def test_the_queue_in_full(printed):
    shown = printed("fake-qstat", "-f", "-r", "-xml", "-u", "*")
    report = read_queues(shown.out)
    (instance,) = report.instances
    # 80 cores are busy, 48 of them with a reservation that has begun
    assert (instance.name, instance.slots_total) == ("all.q@ricc3", 8192)
    assert (instance.slots_used, instance.slots_reserved) == (32, 48)
    running, nameless, waiting = report.jobs
    assert (running.number, running.slots, running.owner, running.run_limit) == (796, 16, "user15", 3 * HOUR)
    assert running.started == from_iso("2026-11-21T08:00:00Z")
    assert nameless.owner == "nobody"
    assert (waiting.state, waiting.owner, waiting.submitted) == ("qw", "eve", from_iso("2026-11-21T07:00:00Z"))
    assert "2 jobs more did not fit" in shown.err


def rows(table, *columns):
    """Return some columns of the rows below a table's head."""
    return [tuple(line.split()[column] for column in columns) for line in table.splitlines()[2:]]


def test_tables_tell_the_same(printed):
    assert rows(printed("fake-qstat").out, 0, 4) == [("796", "r"), ("797", "r"), ("798", "qw")]
    assert rows(printed("fake-qstat", "-u", "eve").out, 0) == [("798",)]
    assert "48/32/8192" in printed("fake-qstat", "-f").out


def test_reservations(printed):
    firm, held = read_reservations(printed("fake-qrstat", "-xml", "-u", "*").out)
    assert (firm.number, firm.name, firm.state) == (1, "ramp_offer-1", "r")
    assert (held.number, held.name, held.state) == (2, "ramp_offer-2-x", "w")
    assert (held.start, held.end) == (from_iso("2026-11-21T10:00:00Z"), from_iso("2026-11-21T11:00:00Z"))
    assert rows(printed("fake-qrstat").out, 0) == [("1",), ("2",)]
    (full,) = read_reservations(printed("fake-qrstat", "-ar", "2", "-xml").out)
    assert (full.slots_at, full.users) == ((("all.q@ricc3", 64),), ("@ramp_offer-2-x",))


def test_a_reservation_that_is_none(printed):
    # the exit codes and words of the real command
    assert read_reservations(printed("fake-qrstat", "-ar", "77", "-xml").out) == ()
    shown = printed("fake-qrstat", "-ar", "77", code=1)
    assert shown.err == "Following advance reservations do not exist:\n77\n"


START = from_iso("2026-11-21T08:00:00Z")
OPTIONS = '{ log = "synthetic", base_time_s = 400000 }'
CONFIG = tiny_market(
    {"alice": 100}, prices={"small": (70, 40)}, cores=512, machine=f'plugin = "fake_qstat"\noptions = {OPTIONS}\n'
)
LOG = "".join(
    f"{number} 0 0 7200 {size} -1 -1 {size} 7200 -1 1 1 1 -1 -1 -1 -1 -1\n" for number, size in ((1, 48), (2, 8))
)


@pytest.fixture
def asked(tmp_path, monkeypatch, capsys):
    """Runs a script at an instant; its exit code, output and complaints."""
    state = tmp_path / "state"

    def run(verb, machine, *arguments, at=START):
        monkeypatch.setattr(clock.SystemClock, "now", lambda _: at)
        code = main([verb, str(machine), "--state-dir", str(state), *map(str, arguments)])
        told = capsys.readouterr()
        return code, told.out.strip(), told.err

    return run


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "market.toml"
    path.write_text(CONFIG)
    return path


def test_scripts_and_plugin_give_the_same_answers(asked, config):
    """At several times of the job and of the question, before and after reservations."""
    options = {"log": "synthetic", "base_time_s": 400000}
    plugin = FakeQstat(PluginSettings("small", 512, 1, START, options=options))
    asked("fake-qstat", config, "--cores", 1)  # the first question starts the system
    answers = set()
    for number in range(12):
        now, cores, ahead = START + number * 37 * MINUTE, 100 + 20 * number, number % 4 * HOUR
        begins = now + ahead
        job = RequestUnit(1, 1, begins + HOUR, TotalCores(cores), not_before=begins, wall_time=HOUR)
        slot = plugin.quote(job, now)
        arguments = ("--cores", cores, "--at", f"+{ahead // SECOND}s")
        code, out, err = asked("fake-qstat", config, *arguments, at=now)
        assert (code, out) == ((1, "") if isinstance(slot, Refusal) else (0, f"{100 * slot.load:.1f}")), err
        answers.add(out)
        if code == 0 and number % 2:
            plugin.hold(f"job-{number}", job, slot, now + HOUR, now)
            plugin.confirm(f"job-{number}", now)
            code, out, _ = asked("fake-qrstat", config, *arguments, at=now)
            assert (code, out.startswith("small-")) == (0, True)
    assert len(answers) > 3


def test_a_log_is_asked_at_its_base_time_and_keeps_what_was_reserved(asked, tmp_path):
    log = tmp_path / "log.swf"
    log.write_text(f"; MaxProcs: 64\n{LOG}")
    an_hour_in = ("--base-time", "1h", "--system-start", "2026-11-21T08:00:00Z")
    assert asked("fake-qstat", log, "--cores", 8, *an_hour_in) == (0, "87.5", "")  # 56 of 64
    assert asked("fake-qstat", log, "--cores", 8, "--at", "+1h", *an_hour_in) == (0, "0.0", "")
    code, out, err = asked("fake-qstat", log, "--cores", 9, *an_hour_in)
    assert (code, out, "9 of 64 cores are not free" in err) == (1, "", True)
    assert "nearest: 2026-11-21T09:00:00Z" in err
    code, out, _ = asked("fake-qrstat", log, "--cores", 32, "--at", "+1h", "--walltime", "2h", "--json", *an_hour_in)
    told = json.loads(out)
    assert (code, told["load_percent"], told["refusal"], bool(told["reservation_id"])) == (0, 0.0, None, True)
    # it is no hold, which would have ended
    assert asked("fake-qstat", log, "--cores", 32, *an_hour_in, at=START + 90 * MINUTE)[:2] == (0, "50.0")
    code, out, _ = asked("fake-qrstat", log, "--cores", 33, "--at", "+2h", "--json", *an_hour_in)
    assert (code, json.loads(out)["refusal"]["code"]) == (1, "cores_taken")
    next((tmp_path / "state").rglob("system-start")).write_text("soon")
    code, _, err = asked("fake-qstat", log, "--cores", 8)
    assert (code, "holds no time" in err) == (2, True), err


def test_a_machine_is_asked_by_its_name(asked):
    told = "angara-desmos: its load is a synthetic workload's\n"
    assert asked("fake-qstat", "angara-desmos", "--cores", 32) == (0, "0.0", told)


@pytest.mark.parametrize(
    ("machine", "arguments", "complaint"),
    [
        ("nothing", ("--cores", 1), "no such file or shipped swarm"),
        ("table2", ("--cores", 1), "expected table2:RESOURCE, one of atlas1"),
        ("table2:curie9", ("--cores", 1), "unknown resource 'curie9'"),
        ("table2:curie1", ("--cores", 1, "--base-time", "1h"), "stands in its configuration"),
        ("curie1", ("--at", "+1h"), "need --cores"),
        ("curie1", ("--json",), "need --cores"),
        ("flat:8", ("--cores", 1), "no such file"),
    ],
)
def test_what_cannot_be_asked_is_said(asked, machine, arguments, complaint):
    code, out, err = asked("fake-qstat", machine, *arguments)
    assert (code, out, complaint in err) == (2, "", True), err


def test_what_a_file_does_not_say_is_said(asked, tmp_path):
    real, log = tmp_path / "real.toml", tmp_path / "log.swf"
    options = 'log = "synthetic", base_time_s = 400000'
    real.write_text(CONFIG.replace('"fake_qstat"', '"gridengine"').replace(options, 'queue = "q"'))
    log.write_text(LOG)
    for path, why in ((real, "gridengine is no simulated machine"), (log, "its header has no MaxProcs")):
        code, _, err = asked("fake-qstat", path, "--cores", 1)
        assert (code, why in err) == (2, True), err


NOW = from_iso("2026-11-21T08:00:00Z")


@pytest.fixture(scope="module")
def snapshot() -> str:
    settings = PluginSettings("angara1", 512, 16, NOW, {"machine": "angara-4x4x2", "load": 0})
    machine = open_plugin(settings)
    for key, nodes in (("held", 4), ("sold", 8)):
        unit = RequestUnit(1, 70, NOW + 2 * HOUR, TotalCores(nodes * 16), NOW, 2 * HOUR)
        slot = quoted(machine, unit, NOW)
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
