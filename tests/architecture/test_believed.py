"""The table of messages in docs/design/trust.md agrees with the model."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import update_believed


def test_table_of_what_makes_a_message_believed() -> None:
    blocks = re.findall(
        r"<!-- table: believed -->\n(.*?)\n<!-- end table -->", update_believed.DOCUMENT.read_text(), re.DOTALL
    )
    assert blocks == [update_believed.table()], "run python tests/architecture/update_believed.py"
