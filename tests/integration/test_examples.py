"""The examples run as their first lines say, and are as short as they should be."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from simulation.cli.simulate import simulate

FOLDER = Path(__file__).parents[2] / "examples"
LINES_MAX = 40


@pytest.mark.parametrize("name", ["own_scheduler.py", "own_allocator.py"])
def test_an_example_runs_as_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (FOLDER / name).read_text("utf-8")
    assert len(text.splitlines()) < LINES_MAX
    command = re.search(r"^ramp simulate ((?:.*\\\n)*.*)", text, re.MULTILINE)
    assert command is not None
    monkeypatch.chdir(FOLDER.parent)
    arguments = [*shlex.split(command[1].replace("\\\n", " ")), "--json"]
    arguments += [] if "--max-jobs" in arguments else ["--max-jobs", "300"]
    result = CliRunner().invoke(simulate, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["jobs"] == 300
