"""ejabberd clusters; the market's own module lies with the swarm's tests."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "swarm")]
