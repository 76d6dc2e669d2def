"""Results of experiments as the pages read them."""

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from ramp.errors import DocumentError
from ramp.web.laboratory.results import PICTURE, ROWS_MAX, TABLE, experiments_in, files_route, read_result, read_table
from simulation.experiments.comparison import Comparison
from simulation.experiments.result import Column, write_rows, write_summary

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
