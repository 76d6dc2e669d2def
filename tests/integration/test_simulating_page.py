"""`docs/simulating-and-extending.md`: its files are written and its commands run, in order, as a reader would."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from ramp.plugins.interface import PluginSettings
from simulation.resource.modelled import open_plugin
from tests.packages import install

PAGE = Path(__file__).parents[2] / "docs" / "simulating-and-extending.md"
FILE = re.compile(r"^`([^`]+)`[^\n]*:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
READER = """
import contextlib, io, json, sys
from ramp.cli.main import main
for command, python in json.load(sys.stdin):
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        code = exec(python, {}) if python else main(command)
    assert not code and told.getvalue(), f"{command or python} ended with {code} and told {told.getvalue()!r}"
"""
"""Runs what it reads in one process: the start of each costs more than what it does."""


def install_page(folder: Path) -> None:
    """What pip makes of the page's pyproject.toml, as far as anybody looks at it."""
    text = (folder / "pyproject.toml").read_text()
    groups = re.sub(r'\[project\.entry-points\."([^"]+)"\]', r"[\1]", text[text.index("[project.entry-points") :])
    install(folder, "my-policies", groups.replace('"', ""))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_file_and_command_of_the_page_works(tmp_path: Path) -> None:
    page = PAGE.read_text("utf-8")
    files = {match.start(2): match for match in FILE.finditer(page)}
    for match in files.values():
        (tmp_path / match[1]).write_text(match[2])
    shutil.copy(PAGE.parents[1] / "examples" / "own_machine.py", tmp_path)
    install_page(tmp_path)
    steps: list[tuple[list[str], str]] = []
    for block in BLOCK.finditer(page):
        if block[1] == "console":
            steps += [(shlex.split(line)[2:], "") for line in block[2].splitlines() if line.startswith("$ ramp ")]
        elif block.start(2) not in files:
            steps.append(([], block[2]))
    assert len(steps) > 15
    done = subprocess.run(
        [sys.executable, "-c", READER],
        input=json.dumps(steps),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "gantt.png").stat().st_size > 10_000
    assert len((tmp_path / "trace.jsonl").read_text().splitlines()) == 501  # the machine, then the jobs


def test_the_files_of_the_page_work_by_name_and_in_a_live_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for match in FILE.finditer(PAGE.read_text("utf-8")):
        if match[1].endswith((".py", ".toml")):
            (tmp_path / match[1]).write_text(match[2])
    install_page(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert {entry.name for entry in metadata.entry_points(group="ramp.schedulers")} >= {"shortest"}
    options = {"machine": "bgl", "load": 0, "scheduler": "shortest", "scheduler_options": {"patience_h": 2}}
    machine = open_plugin(PluginSettings("mine", 128 * 1024, 2, 0, options))
    assert machine.live.queue._scheduler.patience == 2 * 3600 * 1_000_000
