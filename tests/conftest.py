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

# A busy computer must not decide whether a test passes: no limit on an example's time, no check of how fast data comes.
settings.register_profile(
    "whatever_else_runs", deadline=None, suppress_health_check=list(HealthCheck), max_examples=examples(100)
)
settings.load_profile("whatever_else_runs")


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep together, for `--dist loadgroup`, what shares a market: the tests of a file on one kind of server."""
    for item in items:
        if isinstance(item, pytest.Function) and "module_market" in item.fixturenames:
            kind = item.callspec.params.get("kind", "") if hasattr(item, "callspec") else ""
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}-{kind}"))
