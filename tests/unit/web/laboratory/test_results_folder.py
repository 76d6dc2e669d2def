"""The folder of results: nothing outside it is read, and nothing of it that is not what it should be."""

import json
import os

import pytest

from ramp.web.laboratory.folder import ResultsError, ResultsFolder
from ramp.web.laboratory.results import PNG, ROWS_MAX, read_picture, read_result, read_table, told_rows

ROW = {
    "what": "wait", "paper": 10, "ours": 9.5, "unit": "s", "agrees_if": "within 1", "verdict": "agrees (quick)",
    "why": "", "picture": "wait.png",
}  # fmt: skip
COLUMNS = """# Columns of the tables

## table.csv

| column | unit | meaning |
|---|---|---|
| `wait` | s | how long |
| `name` |  | of whom |
| `note` | note | a unit that says no more than the name |
"""


@pytest.fixture
def folder(tmp_path):
    """A folder of results with one experiment, a secret beside it, and links that lead to that."""
    results = tmp_path / "results"
    demo = results / "demo"
    demo.mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(PNG + b"secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "summary.json").write_text('{"experiment": "outside"}')
    (demo / "wait.png").write_bytes(PNG + b"picture")
    (demo / "linked.png").symlink_to(tmp_path / "secret.png")
    (results / "linked").symlink_to(tmp_path / "outside")
    os.mkfifo(demo / "pipe.png")
    write(demo, comparison=[ROW])
    return ResultsFolder(results)


def write(demo, **changes):
    told = {"experiment": "demo", "seed": 3, "quick": True, "parameters": {"mode": "xmpp"}, "wall_s": 2.5,
            "comparison": [], "files": [], **changes}  # fmt: skip
    (demo / "summary.json").write_text(json.dumps(told))


def test_what_an_experiment_has_left_is_read(folder):
    result = read_result(folder, "demo")
    assert (result.seed, result.quick, result.mode, result.took_s) == (3, True, "xmpp", 2.5)
    assert result.verdicts() == {"agrees": 1, "DIFFERS": 0, "no number": 0}
    assert result.pictures == ("wait.png",)
    assert [row.what for row in result.rows_of("wait.png")] == ["wait"]
    assert told_rows(result.rows)[0]["ours"] == 9.5
    assert read_picture(folder, "demo", "wait.png") == PNG + b"picture"


@pytest.mark.parametrize(
    ("experiment", "name", "told"),
    [
        ("demo", "linked.png", "symbolic link"),
        ("linked", "summary.json", "symbolic link"),
        ("demo", "../secret.png", "no name"),
        ("demo", "..", "no name"),
        ("demo", "/etc/passwd", "no name"),
        ("..", "secret.png", "no name"),
        ("demo/..", "secret.png", "no name"),
        ("demo", ".hidden.png", "no name"),
        ("demo", "wait.png\0", "no name"),
        ("demo", "nothing.png", "No such file"),
        ("nothing", "wait.png", "No such file"),
        ("demo", "pipe.png", "no regular file"),
    ],
)
def test_nothing_else_is_read(folder, experiment, name, told):
    with pytest.raises(ResultsError, match=told):
        folder.read(name, 1000, experiment)


def test_links_and_strange_names_are_not_listed(folder):
    (folder.path / "demo" / ".hidden.csv").write_text("a\n1\n")
    (folder.path / "a name").mkdir()
    assert folder.experiments() == ("demo",)
    assert set(folder.files("demo")) == {"summary.json", "wait.png"}
    assert folder.files("linked") == ()
    assert ResultsFolder(folder.path / "not yet").experiments() == ()


def test_files_that_are_too_large_are_not_read(folder):
    (folder.path / "demo" / "big.csv").write_bytes(b"x" * 101)
    with pytest.raises(ResultsError, match="more than the 100 bytes"):
        folder.read("big.csv", 100, "demo")
    assert len(folder.read("big.csv", 101, "demo")) == 101


def test_what_is_called_a_picture_and_is_none_is_not_shown(folder):
    (folder.path / "demo" / "page.png").write_text("<script>alert(1)</script>")
    with pytest.raises(ResultsError, match="no PNG"):
        read_picture(folder, "demo", "page.png")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "no JSON object"),
        ('{"experiment": "other"}', "'other', not of demo"),
        ('{"experiment": 3}', "not of demo"),
    ],
)
def test_a_summary_that_makes_no_sense_is_an_error_of_its_own(folder, text, told):
    (folder.path / "demo" / "summary.json").write_text(text)
    with pytest.raises(ResultsError, match=told):
        read_result(folder, "demo")


def test_rows_that_make_no_sense_are_left_out_and_counted(folder):
    wrong = [None, 3, {}, {**ROW, "verdict": "certainly"}, {**ROW, "what": 3}, {**ROW, "paper": [1]}]
    right = [{**ROW, "paper": "very little", "ours": "much"}, {**ROW, "ours": float("inf"), "picture": 3}]
    write(folder.path / "demo", comparison=[*wrong, *right], seed="x", quick="yes", parameters=[], wall_s=True, notes=3)
    result = read_result(folder, "demo")
    assert (result.left_out, len(result.rows)) == (6, 2)
    assert [(row.paper, row.ours, row.picture) for row in result.rows] == [
        ("very little", None, "wait.png"),
        (10, None, ""),
    ]
    assert (result.seed, result.quick, result.mode, result.took_s, result.notes) == (None, False, "", None, ())


def test_a_table_has_numbers_to_sort_and_units(folder):
    (folder.path / "demo" / "columns.md").write_text(COLUMNS)
    (folder.path / "demo" / "table.csv").write_text('wait,name,note\n10,b,\n9.5,"a, c",x\n,d\n')
    found = read_table(folder, "demo", "table.csv")
    assert found.headings == ("wait (s)", "name", "note")
    assert found.numbers == (True, False, False)
    assert found.rows == ((10, "b", ""), (9.5, "a, c", "x"), (None, "d", ""))
    assert found.whole


def test_of_a_long_table_the_first_rows_are_shown(folder):
    lines = "\n".join(map(str, range(ROWS_MAX + 1)))
    (folder.path / "demo" / "long.csv").write_text(f"n\n{lines}\n")
    found = read_table(folder, "demo", "long.csv")
    assert (len(found.rows), found.rows[-1], found.whole) == (ROWS_MAX, (ROWS_MAX - 1,), False)


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b'a\n"' + b"x" * 200_000 + b'"\n'])
def test_what_is_no_table_is_an_error(folder, content):
    (folder.path / "demo" / "odd.csv").write_bytes(content)
    with pytest.raises(ResultsError, match="no table"):
        read_table(folder, "demo", "odd.csv")
