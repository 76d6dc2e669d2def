"""The engine of declared studies: cases, tables, means, pictures, what is printed, and who measures."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ramp.declarations import load_file
from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.measuring import one_by_one
from simulation.experiments.result import Column, Means
from simulation.experiments.study import Comparison, Found, Run, Shown, Study, rows_of
from simulation.plots.style import new_figure

MEASURED: list[Any] = []


@dataclass(frozen=True)
class Throw:
    size: int
    seed: int


def measure(throw: Throw) -> dict[str, Any]:
    MEASURED.append(throw)
    return {"size": throw.size, "seed": throw.seed, "value": float(10 * throw.size + throw.seed)}


def study(**declared: Any) -> Study:
    settings: dict[str, Any] = {
        "name": "throws",
        "about": "what is thrown",
        "cases": lambda run: [Throw(size, seed) for size in run.either((1, 2, 3), (1, 2)) for seed in run.seeds(3, 2)],
        "measure": measure,
        "columns": {
            "size": Column("m", "of the throw"),
            "value": Column("s", "how long"),
            "value_half": Column("s", "half of its interval"),
        },
    }
    return Study(**settings | declared)


def run(one: Study, out: Path, **options: Any) -> dict[str, Any]:
    return one.run(out, **{"quick": True, "seed": 5, "processes": 1, "on_progress": None, **options})


@pytest.fixture(autouse=True)
def nothing_measured() -> None:
    MEASURED.clear()


def test_rows_tables_and_means_are_written_and_told(tmp_path: Path) -> None:
    """Two seeds of 15 and 16: 15.5 and Student's t of 12.706 over half of their distance."""
    one = study(
        tables={"runs": rows_of(), "means": Means(by=("size",), of=("value",))},
        shown=[Shown("means", "size value", "All throws")],
        comparisons=lambda found: [Comparison("first mean", 15.0, found["means"][0]["value"], "s", 1.0)],
        parameters=lambda found: {"throws": len(found["runs"])},
        notes=lambda found: [f"{len(found['means'])} sizes"],
        findings={"most": lambda found: max(row["value"] for row in found["runs"])},
    )
    summary = run(one, tmp_path)
    with (tmp_path / "means.csv").open(newline="") as stream:
        assert next(csv.DictReader(stream)) == {"size": "1", "value": "15.5", "value_half": "6.353"}
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    assert (summary["parameters"], summary["notes"], summary["most"]) == ({"throws": 4}, ["2 sizes"], 26.0)
    assert summary["comparison"][0]["verdict"] == "agrees (quick)"
    told = one.tell(summary)
    assert told[-4:] == ["All throws", "size        value", "   1  15.5 ±6.353", "   2  25.5 ±6.353"]
    assert "Note: 2 sizes" in told


def test_equal_cases_of_several_parts_are_measured_once_and_the_longest_first(tmp_path: Path) -> None:
    one = study(
        cases=lambda run: {"small": [Throw(1, 1), Throw(2, 1)], "all": [Throw(2, 1), Throw(3, 1)]},
        order=lambda throw: -throw.size,
        tables={"runs": rows_of("small", "all")},
    )
    summary = run(one, tmp_path)
    assert [throw.size for throw in MEASURED] == [3, 2, 1]
    with (tmp_path / "runs.csv").open(newline="") as stream:
        assert [row["size"] for row in csv.DictReader(stream)] == ["1", "2", "2", "3"]
    assert summary["comparison"] == []


def test_cases_that_belong_together_are_one_task_and_progress_counts_tasks(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    one = study(together=lambda throw: throw.seed)
    run(one, tmp_path, on_progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]
    assert [(throw.size, throw.seed) for throw in MEASURED] == [(1, 5), (2, 5), (1, 6), (2, 6)]


def test_cases_that_cannot_be_looked_up_are_measured_each(tmp_path: Path) -> None:
    one = study(cases=lambda run: [{"size": 1}, {"size": 1}], measure=lambda case: case, perform=one_by_one)
    run(one, tmp_path)
    assert (tmp_path / "runs.csv").read_text().split() == ["size", "1", "1"]


def test_options_have_their_defaults(tmp_path: Path) -> None:
    one = study(options={"repeat": 4, "mode": "simulated"}, parameters=lambda found: dict(found.run.options))
    assert run(one, tmp_path, repeat=2)["parameters"] == {"repeat": 2, "mode": "simulated"}


def test_a_study_in_a_file_is_measured_in_other_processes(tmp_path: Path) -> None:
    """Other processes load the file before they see its classes and functions."""
    file, out = tmp_path / "mine.py", tmp_path / "out"
    file.write_text(
        "from dataclasses import dataclass\n"
        "from simulation.experiments.study import Study\n"
        "from simulation.experiments.result import Column\n"
        "@dataclass(frozen=True)\n"
        "class Case:\n    number: int\n"
        "def square(case):\n    return {'number': case.number, 'square': case.number ** 2}\n"
        "COLUMNS = {'number': Column('', 'n'), 'square': Column('', 'n x n')}\n"
        "STUDY = Study(name='squares', about='x', cases=lambda run: [Case(n) for n in range(3)],\n"
        "              measure=square, columns=COLUMNS)\n"
    )
    out.mkdir()
    run(load_file(file).STUDY, out, processes=2)
    assert (out / "runs.csv").read_text().split() == ["number,square", "0,0", "1,1", "2,4"]


def test_means_leave_out_what_has_no_value() -> None:
    means = Means(by=("size",), of=("value",), spread="_sd")
    rows = [{"size": 1, "value": value} for value in (2.0, None, 4.0, "")] + [{"size": 2, "value": None}]
    assert means.over(rows) == [
        {"size": 1, "value": 3.0, "value_sd": 1.0},
        {"size": 2, "value": None, "value_sd": None},
    ]


def curves(rows: list[dict[str, Any]], **declared: Any) -> Any:
    drawing = new_figure(6, 4, "title", quick=False)
    settings: dict[str, Any] = {"table": "rows", "x": Axis("x", "x"), "y": (Axis("y", "y", 100),), **declared}
    Curves(**settings)(drawing, Found(Run(False, 1, {}), {}, tables={"rows": rows}))
    return drawing


def test_curves_have_a_panel_and_a_line_for_each_value_in_the_order_of_x() -> None:
    rows = [
        {"panel": panel, "line": line, "x": x, "y": x / 10 if line == "a" else None if x == 2 else 0.5}
        for panel in ("left", "right")
        for line in ("a", "b")
        for x in (3, 1, 2)
    ]
    left, right = curves(rows, panels=("panel",), lines=("line",)).axes
    assert (left.get_title(), right.get_title()) == ("left", "right")
    handles, labels = left.get_legend_handles_labels()
    assert labels == ["a", "b"]
    assert handles[0].lines[0].get_xydata().tolist() == [[1, 10], [2, 20], [3, 30]]
    assert handles[1].lines[0].get_xdata().tolist() == [1, 3]


def test_several_measures_stand_side_by_side_and_words_at_even_distances() -> None:
    rows = [{"x": word, "y": number, "z": 2 * number} for number, word in enumerate(("few", "some", "many"), 1)]
    one, other = curves(rows, y=(Axis("y", "first"), Axis("z", "second"))).axes
    assert (one.get_ylabel(), other.get_ylabel()) == ("first", "second")
    assert one.get_position().y0 == other.get_position().y0
    assert [text.get_text() for text in one.get_xticklabels()] == ["few", "some", "many"]
    assert one.lines[0].get_xdata().tolist() == [0, 1, 2]
    assert other.get_ylim()[0] == 0


def test_panels_go_down_by_a_column_and_are_wrapped() -> None:
    rows = [{"x": 1, "y": 1.0, "shape": shape, "log": log} for shape in ("slim", "fat") for log in ("A", "B")]
    told: list[tuple[Any, ...]] = []
    drawing = curves(rows, down="shape", panels=("log",), finish=lambda axes, found, panel, rows: told.append(panel))
    assert told == [("slim", "A"), ("slim", "B"), ("fat", "A"), ("fat", "B")]
    assert [axes.get_ylabel() for axes in drawing.axes] == ["y", "", "y", ""]
    wrapped = curves(rows[:3], panels=("shape", "log"), wrap=2).axes
    assert [axes.axison for axes in wrapped] == [True, True, True, False]


def test_a_picture_has_small_print_and_a_legend(tmp_path: Path) -> None:
    draw = Curves(table="runs", x=Axis("size", "m"), y=(Axis("value", "s"),), lines=("seed",))
    drawn: list[Any] = []

    def kept(drawing: Any, found: Found) -> Any:
        drawn.append(drawing)
        return draw(drawing, found)

    picture = Figure(title="Values", size=(5, 4), draw=kept, note=lambda found: f"{len(found['runs'])} rows")
    run(study(figures={"values.png": picture}), tmp_path)
    assert (tmp_path / "values.png").read_bytes().startswith(b"\x89PNG")
    (drawing,) = drawn
    assert drawing.get_suptitle() == "Values (quick)"
    assert "4 rows" in [text.get_text() for text in drawing.texts]
    assert [text.get_text() for text in drawing.legends[0].get_texts()] == ["5", "6"]
