"""Settings for every test."""

import os
import signal
import time

from example_counts import examples
from hypothesis import HealthCheck, settings

# A shell that starts the tests in the background (`make test &`, some CI runners) makes them ignore Ctrl-C, and every
# process they start inherits that. The tests of Ctrl-C need it as at a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What people read is in the zone of the computer; the tests expect UTC.
os.environ["TZ"] = "UTC"
time.tzset()

# A busy computer must not decide whether a test passes: no time limit for an example, no check of how fast data comes.
settings.register_profile(
    "no_time_limits", deadline=None, suppress_health_check=list(HealthCheck), max_examples=examples(150)
)
settings.load_profile("no_time_limits")
