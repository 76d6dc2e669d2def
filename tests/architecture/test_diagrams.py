"""The state diagrams in ARCHITECTURE.md are those of the protocol's tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ramp.protocol.tables import TABLES, mermaid

DOCUMENT = Path(__file__).parents[2] / "ARCHITECTURE.md"


@pytest.mark.parametrize("name", sorted(TABLES))
def test_diagram(name: str) -> None:
    text = DOCUMENT.read_text()
    blocks = re.findall(rf"<!-- diagram: {name} -->\n(.*?)\n<!-- end diagram -->", text, re.DOTALL)
    expected = f"```mermaid\n{mermaid(name)}\n```"
    assert blocks == [expected], f"run python tests/architecture/update_diagrams.py ({name})"
