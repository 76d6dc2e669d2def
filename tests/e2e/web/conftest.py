"""A tiny market, its pages in a process of their own, and browsers; one of each for a file's tests."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ramp.servers.process import free_port
from tests.tiny_market import TWO_SELLERS, launched, tiny_market
from tests.waiting import LIMIT_S

LAUNCHING = """\
[timing]
vote_limit_s = 600
hold_time_s = 900
agreement_validity_s = 840
confirm_limit_s = 600
lease_s = 3600

[launching]
executor = "local"

[accounts]
alice = "@own"
bob = "@own"
"""
CONFIG = LAUNCHING + tiny_market({"alice": 1_000_000, "bob": 10}, prices=TWO_SELLERS | {"gamma": (90, 80)}, cores=512)
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
RAMP = (sys.executable, "-m", "ramp.cli.main")


@pytest.fixture(scope="module")
def market():
    """The state folder of a market that runs."""
    with launched(CONFIG) as state:
        yield state


SCREENSHOTS = os.environ.get("RAMP_SCREENSHOTS", "")
"""Folder for pictures of every page, in both widths and schemes; none are kept where it is not set."""


class Pages:
    """`ramp web` as a process, with further options; `links` has the login link of each name."""

    def __init__(self, state, *options):
        self.state = state
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [*RAMP, "web", "--port", str(self.port), "--state-dir", str(self.state), *options],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.links = {}
        for _ in range(3):  # alice, bob, the keeper
            line = self.process.stdout.readline()
            assert ": " in line, f"ramp web said {line!r} and ended with {self.process.poll()}"
            name, _, link = line.strip().partition(": ")
            self.links[name] = link

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(LIMIT_S) == 0
        self.process.stdout.close()

    def link(self, *options):
        """A new login link."""
        command = [*RAMP, "web", "--link", *options, "--state-dir", str(self.state)]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout.strip()


@pytest.fixture(scope="module")
def pages(market):
    found = Pages(market)
    yield found
    found.stop()


@pytest.fixture(scope="module")
def chromium():
    """A browser; its event loop must not outlive the file, for other tests of the worker have their own."""
    if not Path(CHROMIUM).exists():
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


@pytest.fixture
def visitor(chromium, pages):
    """Opens browsers of their own, each with its cookies; `visitor("alice")` is signed in. No script may fail."""
    contexts, faults = [], []

    def open_browser(name="", **options):
        context = chromium.new_context(**{"timezone_id": "Europe/Berlin", **options})
        context.set_default_timeout(1000 * LIMIT_S)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        if name:
            page.goto(pages.link("--keeper") if name == "keeper" else pages.link("--user", name))
            page.click("button")
        return page

    yield open_browser
    for context in contexts:
        context.close()
    assert faults == []
