"""The examples that are Python programs, an experiment and a notebook run as they stand, and are short."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ramp.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
LINES_MAX = 40


@pytest.mark.slow
def test_a_price_of_ones_own_sells(tmp_path: Path) -> None:
    """On Table 2's machines a request in four sizes is sold by both rules; the dearest is within what was asked."""
    example = EXAMPLES / "own_price.py"
    assert len(example.read_text("utf-8").splitlines()) < LINES_MAX
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, cwd=tmp_path, check=True)
    line = r"^(the paper's rule|by load): sold at ([\d, ]+) credits .* with (\d+) messages$"
    told = re.findall(line, done.stdout, re.MULTILINE)
    assert [name for name, _, _ in told] == ["the paper's rule", "by load"]
    for _, prices, messages in told:
        sold = [int(price) for price in prices.split(", ")]
        assert len(sold) == 4
        assert max(sold) <= 75
        assert int(messages) > 0
    assert told[0][1] != told[1][1]


@pytest.mark.slow
def test_an_experiment_of_ones_own_draws_its_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = EXAMPLES / "own_experiment.py"
    assert len(example.read_text("utf-8").splitlines()) < LINES_MAX
    assert main(["experiment", "run", f"{example}:STUDY", "--out", str(tmp_path), "--quick"]) == 0
    assert "rounds  price" in capsys.readouterr().out
    folder = tmp_path / "own-rounds"
    summary = json.loads((folder / "summary.json").read_text())
    first, *_, last = summary["runs"]
    assert last["price"] < first["price"] <= 70
    assert (folder / "prices.png").read_bytes().startswith(b"\x89PNG")
    assert "| `price` | credits per core hour |" in (folder / "columns.md").read_text()


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells one after the other, each shown value kept; it is stored without outputs, as the format says."""
    notebook = json.loads((EXAMPLES / "market_and_machine.ipynb").read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert sum(len(cell["source"]) for cell in cells) < LINES_MAX
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for cell in cells:
        exec("".join(cell["source"]), names)
    study, runs = names["study"], names["runs"]
    assert study.prices["round"].tolist() == [*range(1, 11)]
    assert study.purchases[0].committed
    assert runs["easy"].metrics.mean_wait_s < runs["fcfs"].metrics.mean_wait_s
    assert not list(tmp_path.iterdir())
