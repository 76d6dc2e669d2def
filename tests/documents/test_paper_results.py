"""The paper pages show every row that an experiment compares, as `docs/_tools/paper_results.py` writes them."""

import csv
import re
from pathlib import Path

import pytest

from paper_results import FOLDER, write_tables
from simulation.experiments.comparison import Verdict
from simulation.experiments.discovery import shipped_experiments
from simulation.experiments.headlines import HEADLINES, as_row
from simulation.workload.logs import find_log

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


def headlines_of_readme() -> list[tuple[str, ...]]:
    row = r"^\| (.+) \| (.+) \| (.+) \| (agrees|DIFFERS)[^|]* \| `([\w-]+)` \|$"
    return [match.groups() for match in re.finditer(row, README.read_text("utf-8"), re.MULTILINE)]


def test_the_headlines_of_the_readme_are_of_these_results() -> None:
    """Each number and verdict of the table's column `here` is in the results of its experiment."""
    lines = headlines_of_readme()
    assert [(about, name) for about, *_, name in lines] == [(one.about, one.name) for one in HEADLINES]
    for result, _, here, verdict, name in lines:
        found = {f"{float(row['here'].split()[0]):.1f}" for row in rows(name) if row["verdict"] == verdict}
        for number in re.findall(r"-?\d+\.\d", here):
            assert number in found, (result, number)


@pytest.mark.slow
@pytest.mark.logs
@pytest.mark.skipif(find_log("CTC-SP2-1996-3.1-cln") is None, reason="needs the workload logs (RAMP_LOGS)")
def test_the_headlines_of_a_run_are_those_of_the_readme(tmp_path: Path) -> None:
    told = []
    for one in HEADLINES:
        (tmp_path / one.name).mkdir()
        found = one.run(tmp_path / one.name, quick=False, seed=1, processes=1, on_progress=None)
        told.append((*as_row(one.about, found["comparison"]), one.name))
    assert [tuple(cell.partition(" (")[0] for cell in line) for line in told] == headlines_of_readme()
