"""`ramp web` as a process, and five of its pages open in Chromium, which note when each replayed event is on them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import psutil
from playwright.async_api import Browser, Page, async_playwright
from playwright.async_api import Error as BrowserError

from ramp.runtime.state_folder import StateFolder
from tests.bench.browsing.replay import Replay

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
LIMIT_S = 300.0
RAMP = (sys.executable, "-m", "ramp.cli.main")
LOOKED_AT = ("/requests", "/machines/curie1", "/prices")
"""The pages besides those of two requests that go on. None has a scene: without a graphics card the browser would draw
it on the processor that the agents are to have, many times a second."""

FLAGS = ("--no-sandbox", "--disable-gpu")
"""Without a scene nothing needs a graphics card; one that is emulated draws a frame a second or less for five pages."""

_NOTING = """
window.noted = [];
new MutationObserver(changes => {
  const now = Date.now();
  for (const each of changes)
    for (const node of each.type === 'characterData' ? [each.target] : each.addedNodes)
      for (const found of (node.textContent || '').matchAll(/\\(event (\\d+)\\)/g))
        if (!(window.last >= +found[1])) { window.last = +found[1]; window.noted.push([+found[1], now]); }
}).observe(document, {subtree: true, childList: true, characterData: true});
"""
"""Events of one request have growing numbers, and a page draws them in their order."""


class PagesServer:
    """`ramp web`, until `stop`."""

    def __init__(self, served: StateFolder) -> None:
        self._served = served
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        command = [*RAMP, "web", "--port", str(self.port), "--state-dir", str(served.path)]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        for _ in range(3):  # two users and the keeper
            assert "/login?token=" in self._process.stdout.readline()
        self.process = psutil.Process(self._process.pid)

    def link(self, user: str) -> str:
        """A login link."""
        command = [*RAMP, "web", "link", "--user", user, "--state-dir", str(self._served.path)]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout.strip()

    def stop(self) -> None:
        """End it."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(LIMIT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()


@dataclass(slots=True)
class OpenPages:
    """Five pages of one user.

    Attributes:
        shown: seconds from when an event was told until a page showed it that had been open before it was told.
        opened: how often a page of a request was opened.
    """

    replay: Replay
    server: PagesServer
    pages: Sequence[Page]
    shown: list[float] = field(default_factory=list)
    opened: int = 0
    _open_since: dict[int, float] = field(default_factory=dict)

    async def look(self) -> None:
        """Collect what the pages have noted; go to another request where the looked at one has ended."""
        for number, page in enumerate(self.pages[: -len(LOOKED_AT)]):
            with contextlib.suppress(BrowserError):  # between two pages there is nobody to ask
                for event, at in await page.evaluate("(window.noted || []).splice(0)"):
                    if self.replay.sent.get(event, 0.0) > self._open_since.get(number, 0.0):
                        self.shown.append(at / 1e3 - self.replay.sent[event])
            going_on = self.replay.requests
            if page.url.rpartition("/")[2] not in going_on and len(going_on) > number:
                with contextlib.suppress(BrowserError):  # on a busy computer it may be over before it is open
                    await page.goto(f"{self.server.url}/requests/{going_on[number]}")
                    await page.locator(".ramp-timeline").wait_for(state="attached")
                    self._open_since[number] = time.time()
                    self.opened += 1

    async def go_on(self, seconds: float) -> None:
        """Look for a while."""
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            await self.look()
            await asyncio.sleep(0.5)


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Debian's browser, without a window."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        await browser.close()


@contextlib.asynccontextmanager
async def open_pages(browser: Browser, server: PagesServer, replay: Replay, user: str) -> AsyncIterator[OpenPages]:
    """Sign in and open five pages; closed at the end."""
    context = await browser.new_context()
    context.set_default_timeout(1000 * LIMIT_S)
    await context.add_init_script(_NOTING)
    pages = [await context.new_page() for _ in range(2 + len(LOOKED_AT))]
    await pages[0].goto(await asyncio.to_thread(server.link, user))
    await pages[0].click("button")
    await pages[0].get_by_role("heading", name="Sellers").wait_for()
    for page, path in zip(pages[2:], LOOKED_AT, strict=True):
        await page.goto(server.url + path)
        await page.get_by_role("heading").first.wait_for()
    yield OpenPages(replay, server, pages)
    await context.close()
