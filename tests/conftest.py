"""What every test starts from."""

import signal

# A shell that starts the tests in the background (`make test &`, some CI runners) has them ignore Ctrl-C, and every
# process they start inherits that; the tests of what Ctrl-C does need it to arrive as at a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
