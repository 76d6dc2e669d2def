"""What every test starts from."""

import gc
import signal
import socket
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
import xdist.scheduler
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

sys.path.append(str(Path(__file__).parent))  # for the module beside this one

import example_counts
from example_counts import examples

# A shell that starts the tests in the background (`make test &`, some CI runners) has them ignore Ctrl-C, and every
# process they start inherits that; the tests of what Ctrl-C does need it to arrive as at a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy computer must not decide whether a test passes: no limit on an example's time, no check of how fast data comes.
settings.register_profile(
    "whatever_else_runs", deadline=None, suppress_health_check=list(HealthCheck), max_examples=examples(150)
)
settings.load_profile("whatever_else_runs")

# Hypothesis reads the source of every module of ours that has been imported for numbers and texts worth a try. In the
# few examples of `make test` they hardly come up, and which there are would depend on the tests that ran before; in a
# fresh clone each worker would take seconds to read them.
if not example_counts.ALL:
    providers._get_local_constants = lambda: providers._local_constants

# What is collected stays until the end: the collector need not walk through hundreds of thousands of such objects again
# and again, neither while they come into being nor in the tests.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Where failed tests are tried again, have workers not wait for the kernel before each of them.

    pytest-rerunfailures writes a line without an answer after each test and asks a question before the next: by Nagle's
    algorithm the question leaves when the line has been acknowledged, which on loopback takes 40 ms. Thousands of tests
    take less.
    """
    asked = getattr(getattr(config, "failures_db", None), "sock", None)
    if isinstance(asked, socket.socket):
        asked.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def pytest_collection_finish() -> None:
    """Leave what was collected to itself, and collect what tests leave less often than programs do."""
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    gc.freeze()


@pytest.hookimpl
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Have xdist's workers tell of a test what somebody reads: what its call came to, and whatever else did not pass.

    Six messages a test, of which four say that something has begun, has been set up or has ended as it should, took
    the two processes 2 ms a test, of thousands. Where failed tests are tried again all is told: that plug-in needs it.
    """
    if not hasattr(item.config, "workerinput") or item.config.getoption("reruns", None):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


_place: dict[pytest.Item | pytest.Collector, int] = {}


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let each of xdist's workers begin to collect at another place of every folder.

    Every worker collects every file, and in a fresh clone has pytest rewrite its assertions, which takes longer than to
    run most of them. In step they would all rewrite the same file; so each finds what the others have left.
    """
    report = yield
    worker = getattr(collector.config, "workerinput", None)
    if worker and isinstance(collector, pytest.Directory) and len(collector.config.args) == 1:  # several: in that order
        _place.update({node: place for place, node in enumerate(report.result)})
        first = len(report.result) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        report.result = report.result[first:] + report.result[:first]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what was collected into the one order that all workers have to agree on."""
    items.sort(key=lambda item: [_place[node] for node in item.listchain() if node in _place])


ONE_SERVER = ("tests/integration/market_cli/", "tests/integration/transport/")
"""Folders whose files share a market or a server, which takes several times as long to start as to test."""


class ByServer(xdist.scheduler.LoadFileScheduling):
    """Files run wherever there is time, those that share a server in one worker."""

    def _split_scope(self, nodeid: str) -> str:
        folders = [folder for folder in ONE_SERVER if nodeid.startswith(folder)]
        return folders[0] if folders else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByServer | None:
    """Let files that share a server stay together, where files do (`--dist loadfile`)."""
    return ByServer(config, log) if config.getvalue("dist") == "loadfile" else None
