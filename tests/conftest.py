"""What every test starts from."""

import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.append(str(Path(__file__).parent))  # for the module beside this one

from example_counts import examples

# A shell that starts the tests in the background (`make test &`, some CI runners) has them ignore Ctrl-C, and every
# process they start inherits that; the tests of what Ctrl-C does need it to arrive as at a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy computer must not decide whether a test passes: no limit on an example's time, no check of how fast data comes.
settings.register_profile(
    "whatever_else_runs", deadline=None, suppress_health_check=list(HealthCheck), max_examples=examples(100)
)
settings.load_profile("whatever_else_runs")
