"""Generated parts of the documents are up to date, and every path that the documents name exists."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import update_believed
import update_diagrams

from ramp.protocol.transition_tables import TABLES

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs" / "design").glob("*.md")]
TREES = "ramp|simulation|tests|docs|schemas|examples|agents_config"
PATH = re.compile(rf"`((?:{TREES})/[\w./-]*|[\w/-]+/[\w-]+\.py)`|\]\((?!http)([^)#]+)")
STARTS = ("", "ramp", "simulation", "docs")


def test_table_of_messages() -> None:
    text = update_believed.DOCUMENT.read_text("utf-8")
    blocks = re.findall(r"<!-- table: believed -->\n(.*?)\n<!-- end table -->", text, re.DOTALL)
    assert blocks == [update_believed.table()], "run python tests/architecture/update_believed.py"


def test_diagrams() -> None:
    text = update_diagrams.DOCUMENT.read_text("utf-8")
    assert text == update_diagrams.page(), "run python tests/architecture/update_diagrams.py"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_paths_exist(document: Path) -> None:
    named = {code or link for code, link in PATH.findall(document.read_text("utf-8"))}
    folders = [ROOT / start for start in STARTS] + [document.parent]
    assert [path for path in sorted(named) if not any((folder / path).exists() for folder in folders)] == []


@pytest.mark.parametrize("name", sorted(TABLES))
def test_the_diagram_has_every_transition_and_no_other(name: str) -> None:
    drawn = set()
    for line in update_diagrams.mermaid(name).splitlines()[1:]:
        match = re.fullmatch(r"    (\w+) --> (\w+): (.+)", line)
        assert match
        drawn |= {(match[1], stimulus, match[2]) for stimulus in match[3].split(" / ")}
    assert drawn == {(move.state.value, move.stimulus, move.next_state.value) for move in TABLES[name]}
