"""The state diagrams in docs/design/state-machines.md agree with the protocol's tables."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import update_diagrams


def test_diagrams() -> None:
    text = update_diagrams.DOCUMENT.read_text("utf-8")
    assert text == update_diagrams.page(), "run python tests/architecture/update_diagrams.py"
