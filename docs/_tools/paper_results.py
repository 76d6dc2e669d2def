"""Writes the tables of compared results of the paper pages: `python docs/_tools/paper_results.py RESULTS`.

RESULTS is a folder in which `ramp experiment run NAME --out RESULTS` has put whole runs with real logs.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Final

COLUMNS: Final = {
    "what": "result",
    "paper": "paper",
    "ours": "here",
    "unit": "unit",
    "verdict": "verdict",
    "why": "why",
}
FOLDER: Final = Path(__file__).parents[1] / "papers" / "results"


def write_tables(results: Path, folder: Path = FOLDER) -> None:
    """Write a table for each experiment that has a comparison, with six digits of our values.

    Args:
        results: with a folder for each experiment.
        folder: of the tables.
    """
    for path in sorted(results.glob("*/comparison.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows = [
                {title: row[name] for name, title in COLUMNS.items()} | {"here": f"{float(row['ours']):.6g}"}
                for row in csv.DictReader(file)
            ]
        with (folder / f"{path.parent.name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS.values(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    write_tables(Path(sys.argv[1]))
