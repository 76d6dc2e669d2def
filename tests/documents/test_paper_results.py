"""The paper pages show every row that an experiment compares, as `docs/_tools/paper_results.py` writes them."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from paper_results import FOLDER, write_tables
from simulation.experiments.comparison import Verdict
from simulation.experiments.discovery import shipped_experiments

PAGES = {path.stem: path.read_text("utf-8") for path in FOLDER.parent.glob("*.md")}
README = Path(__file__).parents[2] / "README.md"
EXPERIMENTS = shipped_experiments()


def rows(name: str, folder: Path = FOLDER) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_results_of_an_experiment_stand_on_one_page(name: str) -> None:
    assert sum(f":file: results/{name}.csv" in text for text in PAGES.values()) == 1
    for row in rows(name):
        assert row["verdict"] in set(Verdict)
        assert row["why"] or row["verdict"] == Verdict.AGREES, row["result"]


@pytest.mark.parametrize("name", ["rounds", "workloads"])
def test_a_run_compares_the_rows_of_the_page(name: str, tmp_path: Path) -> None:
    results, tables = tmp_path / name, tmp_path / "tables"
    results.mkdir()
    tables.mkdir()
    EXPERIMENTS[name].run(results, quick=True, seed=1, processes=1, on_progress=None)
    write_tables(tmp_path, tables)
    made, shown = (
        {re.sub("[0-9]+ most", "most", row["result"]) for row in rows(name, folder)} for folder in (tables, FOLDER)
    )
    assert made == shown


def test_the_headlines_of_the_readme_are_of_these_results() -> None:
    """Each number and verdict of the table's column `here` is in the results of its experiment."""
    row = r"^\| (.+) \| .+ \| (.+) \| (agrees|DIFFERS)[^|]* \| `([\w-]+)`[^|]* \| .+ \|$"
    lines = re.findall(row, README.read_text("utf-8"), re.MULTILINE)
    assert len(lines) == 5
    for result, here, verdict, name in lines:
        values = [abs(float(row["here"].split()[0])) for row in rows(name) if row["verdict"] == verdict]
        found = {f"{value:.{digits}f}" for value in values for digits in (0, 1)}
        for number in re.findall(r"\d+(?:\.\d)?", here):
            assert number in found, (result, number)
