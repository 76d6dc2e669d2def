"""Markets on every kind of server; markets, clusters and rogues lie with others' tests."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / folder) for folder in ("swarm", "ejabberd", "attacks")]
