"""What the tests of faults share; the module beside this one is found by its name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
