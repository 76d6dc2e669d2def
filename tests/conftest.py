"""What every test starts from."""

import signal

from hypothesis import HealthCheck, settings

# A shell that starts the tests in the background (`make test &`, some CI runners) has them ignore Ctrl-C, and every
# process they start inherits that; the tests of what Ctrl-C does need it to arrive as at a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy computer must not decide whether a test passes: no limit on an example's time, no check of how fast data comes.
settings.register_profile("whatever_else_runs", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("whatever_else_runs")
