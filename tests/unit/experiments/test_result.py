"""What experiments leave behind: tables, a data dictionary, a summary; and whole folders or none."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ramp.errors import ConfigurationError, TransportError
from simulation.experiments.comparison import Comparison
from simulation.experiments.discovery import all_experiments, find_experiment
from simulation.experiments.report import write_report
from simulation.experiments.result import Column, write_rows, write_summary
from simulation.experiments.running import prepare, run_into
from simulation.experiments.study import Figure, Found, Study

ALL_STAND_INS = "20 of 20 machines have stand-ins for their logs"
FETCH = "fetch the logs (`ramp logs --fetch all`)"
COLUMNS = {"x": Column("cores", "how many"), "y": Column("", "a name"), "other.csv/x": Column("s", "how long")}


def leave(out: Path, comparisons: list[Comparison], **further: Any) -> dict[str, Any]:
    write_rows(out / "rows.csv", [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}])
    write_rows(out / "other.csv", [{"x": 1}])
    settings: dict[str, Any] = {"experiment": "demo", "seed": 7, "quick": True, "parameters": {"load": 1.0}}
    settings |= {"findings": {"extra": [1]}, "columns": COLUMNS, **further}
    return write_summary(out, comparisons=comparisons, **settings)


def test_summary_holds_paper_and_ours_side_by_side(tmp_path: Path) -> None:
    summary = leave(tmp_path, [Comparison("utilisation", 50.0, 49.6, "%", 4.0)], stand_ins="6 of 20 stand-ins")
    assert (tmp_path / "rows.csv").read_text() == "x,y\n1,a\n2,b\n"
    stored = json.loads((tmp_path / "summary.json").read_text())
    assert stored == summary
    assert (stored["seed"], stored["quick"], stored["extra"]) == (7, True, [1])
    assert (stored["comparison"][0]["paper"], stored["comparison"][0]["ours"]) == (50.0, 49.6)
    assert stored["comparison"][0]["verdict"] == "agrees (6 of 20 stand-ins, quick)"
    assert stored["verdicts"] == {"agrees": 1, "DIFFERS": 0, "no number": 0}
    assert stored["files"] == ["columns.md", "comparison.csv", "other.csv", "rows.csv", "summary.json"]


@pytest.mark.parametrize(
    ("stand_ins", "quick", "why"),
    [
        ("", False, "found with whole runs"),
        ("6 of 20 stand-ins", False, "found with whole runs"),
        ("", True, "this is the quick version: to compare, run without --quick"),
        ("20 of 20 stand-ins", False, f"{ALL_STAND_INS}: to compare, {FETCH}"),
        (
            "20 of 20 stand-ins",
            True,
            f"{ALL_STAND_INS} and this is the quick version: to compare, {FETCH} and run without --quick",
        ),
    ],
)
def test_only_a_whole_run_on_real_logs_tells_why_it_differs(
    tmp_path: Path, stand_ins: str, quick: bool, why: str
) -> None:
    row = Comparison("price", 50.0, 60.0, "credits", 4.0, why="found with whole runs")
    summary = leave(tmp_path, [row], stand_ins=stand_ins, quick=quick)
    assert summary["comparison"][0]["why"] == why


def test_every_column_of_every_table_is_in_the_data_dictionary(tmp_path: Path) -> None:
    leave(tmp_path, [])
    told = (tmp_path / "columns.md").read_text()
    assert "## rows.csv\n\n| column | unit | meaning |\n|---|---|---|\n| `x` | cores | how many |" in told
    assert "| `x` | s | how long |" in told.split("## other.csv")[1].split("##")[0]
    assert {"what", "paper", "ours", "verdict"} <= set(re.findall(r"`(\w+)`", told))
    write_rows(tmp_path / "more.csv", [{"z": 1}])
    with pytest.raises(AssertionError, match=r"column z of more\.csv"):
        leave(tmp_path, [])


def experiment(name: str = "demo", measure: Any = None) -> Study:
    return Study(
        name=name,
        about="what it is about",
        cases=lambda _: [0],
        measure=measure or (lambda _: {"x": 1, "y": "a"}),
        tables={"rows": lambda found: found.answers["runs"]},
        columns=COLUMNS,
        figures={"one.png": _Picture(title="", size=(1, 1), draw=lambda drawing, found: [])},
        comparisons=lambda _: [
            Comparison("below | one", 50.0, 49.6, "%", 4.0, picture="one.png"),
            Comparison("<elsewhere>", 5, 3.0, "", tolerance=1, why="too small"),
            Comparison("<nowhere>", "-", 3.0, "", why="too few & too small"),
        ],
    )


class _Picture(Figure):
    """Takes no time."""

    def save(self, found: Found, path: Path) -> None:
        path.write_bytes(b"picture")


OPTIONS: dict[str, Any] = {"quick": True, "seed": 1, "processes": 1, "on_progress": None}


def test_results_are_in_a_folder_of_the_experiments_name(tmp_path: Path) -> None:
    summary = run_into(experiment(), tmp_path, **OPTIONS)
    assert json.loads((tmp_path / "demo" / "summary.json").read_text()) == summary
    assert summary["wall_s"] >= 0
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


def test_results_do_not_mix(tmp_path: Path) -> None:
    """Earlier results are refused, or replaced whole; what is no result is never touched."""
    run_into(experiment(), tmp_path, **OPTIONS)
    (tmp_path / "demo" / "left_behind.csv").write_text("x\n")
    with pytest.raises(ConfigurationError, match=r"demo: out: holds results already.*--replace"):
        prepare([experiment()], tmp_path, replace=False)
    prepare([experiment()], tmp_path, replace=True)
    run_into(experiment(), tmp_path, **OPTIONS)
    assert not (tmp_path / "demo" / "left_behind.csv").exists()
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("years of work")
    with pytest.raises(ConfigurationError, match="is needed for the results of thesis"):
        prepare([experiment("thesis")], tmp_path, replace=True)


def test_two_runs_at_once_do_not_write_into_one_directory(tmp_path: Path) -> None:
    def again(_: Any) -> dict[str, Any]:
        with pytest.raises(ConfigurationError, match="another run of demo is writing into it"):
            run_into(experiment(), tmp_path, **OPTIONS)
        return {"x": 1, "y": 2}

    (tmp_path / ".demo" / "demo").mkdir(parents=True)
    (tmp_path / ".demo" / "demo" / "left_by_a_killed_run.csv").write_text("x\n")
    run_into(experiment(measure=again), tmp_path, **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]
    assert not (tmp_path / "demo" / "left_by_a_killed_run.csv").exists()


def test_a_run_that_fails_leaves_nothing_and_spares_what_was_there(tmp_path: Path) -> None:
    def failing(_: Any) -> dict[str, Any]:
        raise TransportError("the market did not come up")

    run_into(experiment(), tmp_path, **OPTIONS)
    with pytest.raises(TransportError):
        run_into(experiment(measure=failing), tmp_path, **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]
    assert (tmp_path / "demo" / "rows.csv").exists()


def test_the_page_has_every_picture_beside_its_rows(tmp_path: Path) -> None:
    run_into(experiment(), tmp_path, **OPTIONS)
    page = write_report(tmp_path, [experiment(), experiment("never-run")], {"broken": "no <logs>"})
    text = page.read_text()
    beside, elsewhere = text.split('<img src="demo/one.png"')[1].split("</table>")[:2]
    assert "below | one" in beside
    assert "50.0 %" in beside
    assert "agrees (quick)" in beside
    assert "&lt;elsewhere&gt;" in elsewhere
    assert "too few &amp; too small" in elsewhere
    assert "DIFFERS (quick)" in elsewhere
    assert "<strong>broken was not run:</strong> no &lt;logs&gt;" in text
    assert "never-run" not in text
    told = (tmp_path / "report.md").read_text()
    assert "![one.png](demo/one.png)" in told
    assert "below \\| one | 50.0 % | 49.60 % | within 4 | agrees (quick)" in told
    assert "**DIFFERS (quick)**" in told
    for name in ("comparison.csv", "rows.csv", "columns.md"):
        assert f"(demo/{name})" in told


def test_every_experiment_says_what_it_is_about() -> None:
    for name, one in all_experiments().items():
        assert one.name == name
        assert one.about
        assert find_experiment(name) == one
