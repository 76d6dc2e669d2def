"""`ramp fake-qstat` and `ramp fake-qrstat` with `--cores`: the paper's scripts, section 8, against the plug-in."""

import json

import pytest

from ramp.cli.main import main
from ramp.model.instant import HOUR, MINUTE, SECOND, from_iso
from ramp.model.offer import Refusal
from ramp.model.request import RequestUnit, TotalCores
from ramp.plugins.interface import PluginSettings
from ramp.runtime import clock
from simulation.resource.fake_qstat import FakeQstat
from tests.tiny_market import tiny_market

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
