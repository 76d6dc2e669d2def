"""Writes the tables of compared results of the paper pages: `python docs/_tools/paper_results.py RESULTS`.

RESULTS is a folder in which `ramp experiment run NAME --out RESULTS` has put whole runs with real logs.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Final

COLUMNS: Final = ("result", "paper", "here", "verdict", "why")
FOLDER: Final = Path(__file__).parents[1] / "papers" / "results"


def write_tables(results: Path, folder: Path = FOLDER) -> None:
    """Write a table for each experiment that has a comparison.

    Args:
        results: with a folder for each experiment.
        folder: of the tables.
    """
    for path in sorted(results.glob("*/comparison.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            found = list(csv.DictReader(file))
        with (folder / f"{path.parent.name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            for row in found:
                here = f"{float(row['ours']):.4g} {row['unit']}".strip()
                verdict = row["verdict"].partition(" (")[0]  # the page says once what all verdicts must be read with
                writer.writerow([row["what"], row["paper"], here, verdict, row["why"]])


if __name__ == "__main__":
    write_tables(Path(sys.argv[1]))
