"""Pages that follow what goes on: one question at a time, and nothing for who cannot draw it."""

import asyncio
import time
from collections import deque
from types import SimpleNamespace

import pytest
from nicegui import Client, core, ui

from ramp.errors import TransportError
from ramp.web.live import Changes
from ramp.web.pages import frame
from ramp.web.pages.frame import BEHIND_S, PageClosed, Refresher, is_behind
from tests.waiting import soon


class FakeClient:
    def __init__(self):
        self.is_deleted = False
        self.outbox = SimpleNamespace(message_history=deque())
        self.ends = []

    def on_delete(self, end):
        self.ends.append(end)

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


@pytest.fixture
def client(monkeypatch):
    found = FakeClient()
    monkeypatch.setattr(frame, "ui", SimpleNamespace(context=SimpleNamespace(client=found)))
    return found


async def test_what_is_wanted_meanwhile_is_done_once_more_afterwards(client):
    gates, begun = [asyncio.Event() for _ in range(3)], []

    async def look():
        begun.append(None)
        await gates[len(begun) - 1].wait()

    refresher = Refresher(look, pause=0)
    for _ in range(5):
        refresher.changed()
    await soon(lambda: len(begun) == 1)
    for _ in range(5):
        refresher.changed()
    gates[0].set()
    gates[1].set()
    await soon(lambda: len(begun) == 2)
    for _ in range(9):
        await asyncio.sleep(0)
    assert len(begun) == 2
    refresher.changed()
    await soon(lambda: len(begun) == 3)
    client.ends[0]()
    await soon(refresher._task.done)


@pytest.mark.parametrize("error", [ConnectionError, TransportError("no answer")])
async def test_what_could_not_be_drawn_is_drawn_again(client, error):
    drawn = []

    def draw():
        drawn.append(None)
        raise error

    refresher = Refresher(draw, pause=0)
    for count in (1, 2):
        refresher.changed()
        await soon(lambda count=count: len(drawn) == count)
    client.ends[0]()


@pytest.mark.parametrize(("about", "heard"), [(None, 3), ("r1", 2)])
async def test_a_page_listens_until_it_is_closed(monkeypatch, about, heard):
    monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
    changes, drawn = Changes(), []
    page = Client(ui.page("/"))
    with page:
        Refresher(lambda: drawn.append(None), changes, about=about, pause=0)
    for changed in ("r1", "r2", ""):
        changes.emit(changed)
        for _ in range(9):
            await asyncio.sleep(0)
    assert len(drawn) == heard
    page.delete()
    assert not changes.callbacks


async def test_a_page_that_was_closed_while_it_was_built_listens_to_nothing(client):
    client.is_deleted = True
    changes = Changes()
    with pytest.raises(PageClosed):
        Refresher(lambda: None, changes)
    assert not changes.callbacks


@pytest.mark.parametrize(("ages", "behind"), [((), False), ((1.0,), False), ((BEHIND_S + 1, 1.0), True)])
def test_a_browser_that_acknowledges_nothing_is_behind(ages, behind):
    sent = deque((number, time.time() - age, None) for number, age in enumerate(ages))
    assert is_behind(SimpleNamespace(outbox=SimpleNamespace(message_history=sent))) is behind
