"""Draws the state diagrams in ARCHITECTURE.md anew from the protocol's tables (marks `<!-- diagram: NAME -->`)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ramp.protocol.tables import TABLES, mermaid

DOCUMENT = Path(__file__).parents[2] / "ARCHITECTURE.md"
BLOCK = re.compile(r"(<!-- diagram: (\w+) -->\n).*?(<!-- end diagram -->)", re.DOTALL)


def drawn(text: str) -> str:
    """The document with every block drawn anew; an unknown name is an error."""
    return BLOCK.sub(lambda match: f"{match[1]}```mermaid\n{mermaid(match[2])}\n```\n{match[3]}", text)


if __name__ == "__main__":
    before = DOCUMENT.read_text()
    missing = sorted(set(TABLES) - {match[2] for match in BLOCK.finditer(before)})
    DOCUMENT.write_text(drawn(before))
    sys.exit(f"no block for {', '.join(missing)}" if missing else 0)
