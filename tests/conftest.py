"""What every test starts from."""

import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.append(str(Path(__file__).parent))  # for the module beside this one

from example_counts import examples

# A shell that starts the tests in the background (`make test &`, some CI runners) has them ignore Ctrl-C, and every
# process they start inherits that; the tests of what Ctrl-C does need it to arrive as at a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_itemcollected(item: pytest.Item) -> None:
    """What `--dist loadgroup` keeps together: a file's tests on one kind of server, which share a market.

    Pages of the documentation have a market each. (Later, in pytest_collection_modifyitems, pytest-xdist has looked.)
    """
    params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    parts = (str(params[name]) for name in ("kind", "shared_server", "page") if name in params)
    item.add_marker(pytest.mark.xdist_group(":".join([item.location[0], *parts])))


# A busy computer must not decide whether a test passes: no limit on an example's time, no check of how fast data comes.
settings.register_profile(
    "whatever_else_runs", deadline=None, suppress_health_check=list(HealthCheck), max_examples=examples(100)
)
settings.load_profile("whatever_else_runs")
