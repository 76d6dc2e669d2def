"""Experiments on the pages: runs, with a program in place of the command line; results; traces counted by hand."""

import json
import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from ramp.errors import ConfigurationError, DocumentError
from ramp.web.pages.laboratory.results import (
    PICTURE,
    ROWS_MAX,
    TABLE,
    experiments_in,
    files_route,
    read_result,
    read_table,
)
from ramp.web.pages.laboratory.runs import Runs, answer_of, arguments
from ramp.web.pages.laboratory.trace import (
    bars_around,
    drawn_at,
    elapsed_text,
    moment_of,
    most_processors,
    read_trace,
    waiting_at,
)
from ramp.web.pages.machines.torus_map import Kind
from simulation.experiments.comparison import Comparison
from simulation.experiments.result import Column, write_rows, write_summary
from tests.waiting import soon

PROGRAM = """
import json, pathlib, signal, sys, time
words = sys.argv[1:]
if words[1] == "list":
    print(json.dumps([{"name": name, "about": "", "options": []} for name in ("good", "bad")]))
    sys.exit()
out = pathlib.Path(words[words.index("--out") + 1])
def say(text):
    print(text, file=sys.stderr, flush=True)
say(f"{words[2]}: 1 of 4, about 30 s left")
if words[2] == "good":
    say(f"{words[2]}: 4 of 4")
    print("x" * 300_000)
    (out / "words").write_text(" ".join(words))
elif words[2] == "bad":
    say("ramp: a log is missing")
    sys.exit(2)
else:
    def end(*_):
        (out / "cleared").touch()
        sys.exit(143)
    signal.signal(signal.SIGTERM, end)
    (out / "ready").touch()
    time.sleep(600)
"""


@pytest.fixture
async def runs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found = Runs(tmp_path, (sys.executable, str(program)))
    yield found
    await found.end()


async def test_a_run_tells_its_progress_and_ends(runs, tmp_path):
    assert list(await runs.offered()) == ["good", "bad"]
    runs.start("good", {"seed": 5.0, "quick": True})
    assert (runs.latest.state, runs.latest.total) == ("running", 0)
    await soon(lambda: runs.latest.is_over)
    assert (runs.latest.state, runs.latest.done, runs.latest.total, runs.latest.left) == ("done", 4, 4, "")
    words = f"experiment run good --seed=5 --quick --out {tmp_path} --progress-every 1"
    assert (tmp_path / "words").read_text() == words


async def test_why_a_run_has_failed_is_told_in_its_own_words(runs):
    runs.start("bad", {})
    await soon(lambda: runs.latest.is_over)
    assert (runs.latest.state, list(runs.latest.said)) == ("failed", ["ramp: a log is missing", "exit code 2"])


async def test_results_are_replaced_only_if_that_is_chosen(runs, tmp_path):
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "summary.json").touch()
    with pytest.raises(ConfigurationError, match="good has results"):
        runs.start("good", {"replace": False})
    assert runs.latest is None
    runs.start("good", {"replace": True})
    await soon(lambda: runs.latest.is_over)
    assert runs.latest.state == "done"


async def test_a_run_that_is_stopped_clears_up_and_then_another_may_begin(runs, tmp_path):
    runs.start("long", {})
    await soon((tmp_path / "ready").exists)
    await soon(lambda: runs.latest.left == "30 s")
    with pytest.raises(ConfigurationError, match="long is still running"):
        runs.start("good", {})
    runs.stop()
    assert runs.latest.state == "stopping"
    await soon(lambda: runs.latest.is_over)
    assert (runs.latest.state, (tmp_path / "cleared").exists()) == ("stopped", True)
    runs.start("good", {})
    await soon(lambda: runs.latest.is_over)
    assert runs.latest.state == "done"


async def test_a_run_that_is_stopped_at_once_has_no_results(runs, tmp_path):
    runs.start("good", {})
    runs.stop()
    await soon(lambda: runs.latest.is_over)
    assert (runs.latest.state, (tmp_path / "words").exists()) == ("stopped", False)


async def test_a_run_ends_with_its_server(runs, tmp_path):
    runs.start("long", {})
    await soon((tmp_path / "ready").exists)
    await runs.end()
    assert (runs.latest.state, (tmp_path / "cleared").exists()) == ("stopped", True)


async def test_a_command_that_fails_is_told_in_its_own_words():
    with pytest.raises(ConfigurationError, match="`ramp smap x` failed: no such verb"):
        await answer_of("smap", "x", command=(sys.executable, "-c", 'import sys; sys.exit("no such verb")'))


def test_options_are_those_of_the_command_line():
    values = {"seed": 7.0, "repeat": None, "xmpp": True, "replace": False, "rule": "second-price", "log": "CTC-3.1:338"}
    assert arguments({**values, "pricing": ""}) == ["--seed=7", "--xmpp", "--rule=second-price", "--log=CTC-3.1:338"]


@pytest.mark.parametrize("value", ["/tmp/rule.py:Rule", "os:system", "../secret.toml", "--out", "a b", "a\n", ["a"]])
def test_a_browser_names_no_file(value):
    with pytest.raises(ConfigurationError, match="--rule: expected a name"):
        arguments({"rule": value})


SHOWN = Comparison("wait", 10.0, 9.5, "s", 1.0, picture="wait.png")
UNSHOWN = Comparison("slots at once", "several", 9.0, "slots", why="words")
COLUMNS = {"wait": Column("s", "time in the queue"), "name": Column("", "of the user"), "note": Column("note", "any")}


@pytest.fixture
def folder(tmp_path):
    """A folder of results in which the experiments' own writer has put those of `demo`."""
    demo = tmp_path / "results" / "demo"
    demo.mkdir(parents=True)
    (tmp_path / "secret.png").touch()
    (demo / "wait.png").touch()
    rows = [
        {"wait": 10, "name": "b", "note": ""},
        {"wait": 9.5, "name": "a, c", "note": "x"},
        {"wait": "", "name": "d"},
    ]
    write_rows(demo / "table.csv", rows)
    write_rows(demo / "long.csv", [{"wait": number} for number in range(ROWS_MAX + 1)])
    findings = {"notes": ["small"], "note": "and quick", "wall_s": 2.5}
    write_summary(demo, experiment="demo", seed=3, quick=True, parameters={"mode": "xmpp"}, columns=COLUMNS,
                  comparisons=[SHOWN, UNSHOWN], findings=findings)  # fmt: skip
    return demo.parent


def test_what_an_experiment_has_written_is_read(folder):
    result = read_result(folder, "demo")
    assert (result.version, result.notes) == ("quick version, xmpp, seed 3", ["small", "and quick"])
    assert (result.files(PICTURE), result.files(TABLE)) == (["wait.png"], ["comparison.csv", "long.csv", "table.csv"])
    assert [row["what"] for row in result.rows("wait.png")] == ["wait"]
    assert [row["what"] for row in result.rows()] == ["slots at once"]


@pytest.mark.parametrize("name", ["..", ".", "nothing", "demo/..", "", ".demo-7"])
def test_nothing_else_is_read(folder, name):
    (folder.parent / "summary.json").write_text("{}")
    unfinished = folder / ".demo-7"
    unfinished.mkdir()
    (unfinished / "summary.json").write_text("{}")
    assert experiments_in(folder) == ["demo"]
    with pytest.raises(DocumentError, match="no results"):
        read_result(folder, name)


def test_a_summary_that_is_not_json_is_named(folder):
    (folder / "demo" / "summary.json").write_text("{")
    with pytest.raises(DocumentError, match=r"demo/summary\.json: not JSON"):
        read_result(folder, "demo")
    assert experiments_in(folder / "not yet") == []


def test_a_table_has_numbers_to_sort_and_units(folder):
    headings, rows, complete = read_table(read_result(folder, "demo"), "table.csv")
    assert headings == ["wait (s)", "name", "note"]
    assert rows == [[10, "b", None], [9.5, "a, c", "x"], [None, "d", None]]
    assert complete


def test_of_a_long_table_the_first_rows_are_shown(folder):
    _, rows, complete = read_table(read_result(folder, "demo"), "long.csv")
    assert (len(rows), rows[-1], complete) == (ROWS_MAX, [ROWS_MAX - 1], False)


def test_browsers_fetch_pictures_and_tables_of_the_folder_and_nothing_else(folder):
    (folder / "secret.png").touch()
    (folder / "demo" / "other.png").touch()
    browser = TestClient(Starlette(routes=[files_route(folder)]))
    for path in ("demo/wait.png", "demo/table.csv"):
        assert browser.get(f"/laboratory/files/{path}").content == (folder / path).read_bytes()
    outside = ("demo/..%2fsecret.png", "..%2f..%2fetc/passwd", "%2e%2e/secret.png")
    for path in ("demo/other.png", "demo/summary.json", *outside):
        assert browser.get(f"/laboratory/files/{path}").status_code == 404, path


GOLDEN = Path(__file__).parents[3] / "golden" / "traces"
"""Written by hand: job 1 a whole line along x from 0 to 100, 4 one midplane from 20 to 50, 3 the whole machine."""

BGL = {"extents": [8, 4, 4], "cables": {"x": [(0, 1)] * 14, "y": [(0, 1)] * 4, "z": [(0, 1)] * 4}}


def line(number, submit, start, end, nodes, **more):
    return {"job_number": number, "submit_time": submit, "start_time": start, "end_time": end, "nodes": nodes, **more}


@pytest.fixture
def trace(tmp_path):
    """Reads a trace of these lines."""

    def read(*lines):
        told = (each if isinstance(each, str) else json.dumps(each) for each in lines)
        (tmp_path / "t.jsonl").write_text("\n".join(['{"trace": 1, "machine": "bgl"}', *told]))
        machine, stays = read_trace(tmp_path, "t.jsonl")
        assert machine == "bgl"
        return stays

    return read


def test_the_machine_at_a_second_of_a_trace():
    machine, played = read_trace(GOLDEN, "bgl-first-fit.jsonl")
    assert machine == "bgl"
    at_30 = drawn_at(played, BGL, 30)
    assert {each.name: len(each.places) for each in at_30.occupants} == {"1": 8, "2": 2, "4": 1}
    assert ((at_30.units, at_30.dimensions, at_30.left_out), waiting_at(played, 30)) == ((128, 3, 0), 1)
    assert len(at_30.occupied(moment_of(30))) == 11
    # a job ends before its last second, and begins with its first
    assert [each.name for each in drawn_at(played, BGL, 100).occupants] == ["2"]
    assert drawn_at(played, BGL, 99.5).occupants[0].places[:2] in (((0, 0, 0), (1, 0, 0)), ((0, 0, 1), (1, 0, 1)))
    # the whole machine waits until the pair is done
    assert [each.name for each in drawn_at(played, BGL, 305).occupants] == ["3"]


def test_segments_and_reservations_are_played(trace):
    grown = line(1, 0, 10, 30, "bgl[000x001]", segments=[
        {"start_time": 10, "end_time": 20, "nodes": "bgl000"},
        {"start_time": 20, "end_time": 30, "nodes": "bgl[000x001]"},
    ])  # fmt: skip
    played = trace(grown, {"reservation": "slot", "start_time": 5, "end_time": 15, "nodes": "bgl100"},
                   {"out": "down", "start_time": 0, "end_time": 9, "nodes": "bgl733"})  # fmt: skip
    assert [(each.name, each.kind, len(each.places)) for each in drawn_at(played, BGL, 12).occupants] == [
        ("1", Kind.JOB, 1),
        ("reservation slot", Kind.SOLD, 1),
    ]
    assert [len(each.places) for each in drawn_at(played, BGL, 25).occupants] == [2]
    assert (waiting_at(played, 5), waiting_at(played, 15)) == (1, 0)


@pytest.mark.parametrize("wrong", ["{", "3", "[]", "{}"])
def test_a_line_that_is_none_of_a_trace_is_named(trace, wrong):
    with pytest.raises(DocumentError, match=r"t\.jsonl: line 3 is not a line of a trace"):
        trace(line(1, 0, 0, 10, "bgl000"), wrong)


def test_only_traces_of_the_folder_are_read(trace, tmp_path):
    with pytest.raises(DocumentError, match="is empty"):
        trace()
    (tmp_path / "secret.json").touch()
    for name in ("secret.json", "none.jsonl", "../t.jsonl", "..", f"../{tmp_path.name}/t.jsonl"):
        with pytest.raises(DocumentError, match="no trace"):
            read_trace(tmp_path, name)


def test_units_of_another_machine_are_counted_and_not_drawn(trace):
    played = trace(line(1, 0, 0, 10, "bgl000"), line(2, 0, 0, 10, "bgl900"), line(3, 0, 0, 10, "../../etc"))
    drawn = drawn_at(played, BGL, 1)
    assert ([each.name for each in drawn.occupants], drawn.left_out) == (["1"], 2)


@pytest.mark.parametrize("first", ['{"trace": 2, "machine": "bgl"}', '{"job_number": 1}', "[]"])
def test_a_trace_begins_with_its_version_and_machine(tmp_path, first):
    (tmp_path / "t.jsonl").write_text(first)
    with pytest.raises(DocumentError, match=r"t\.jsonl: line 1 is not a line of a trace"):
        read_trace(tmp_path, "t.jsonl")


def test_a_flat_machine_has_bars_around_the_second_that_is_played(trace):
    played = trace(
        line(1, 0, 0, 100, "4"), line(2, 0, 50, 200, "2"), line(3, 60, 100, 150, "4"), line(4, 90, 150, 160, "1")
    )
    assert most_processors(played) == 6
    bars = {bar.name: bar for bar in bars_around(played, 6, 80, 1000)}
    assert {name: bar.kind for name, bar in bars.items()} == {
        "1": "running", "2": "running", "3": "waiting", "4": "not submitted yet",
    }  # fmt: skip
    assert {name: (bar.first_core, bar.cores) for name, bar in bars.items()} == {
        "1": (0, 4), "2": (4, 2), "3": (0, 4), "4": (0, 1),
    }  # fmt: skip
    assert {bar.kind for bar in bars_around(played, 6, 300, 1000)} == {"ended"}
    assert [bar.name for bar in bars_around(played, 6, 175, 15)] == ["2"]


def test_seconds_are_told_as_days_and_hours():
    assert elapsed_text(2 * 86_400 + 3 * 3600 + 4 * 60 + 5) == "day 2 03:04:05, second 183845"
