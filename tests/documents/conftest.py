"""Modules beside these tests, and those that draw the generated pages, are found by their names."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "docs" / "_tools")]
