"""Pages that follow what goes on: one question at a time, and nothing for who cannot draw it."""

import asyncio
import time
from collections import deque
from types import SimpleNamespace

import pytest

from ramp.web.pages.refreshing import BEHIND_S, is_behind
from ramp.web.pages.visit import PageClosed, Visit


class FakeClient:
    def __init__(self):
        self.is_deleted = False
        self.ends = []

    def on_delete(self, end):
        self.ends.append(end)


@pytest.fixture
def visit():
    return Visit(None, None, None, FakeClient())


async def test_what_is_wanted_meanwhile_is_done_once_more_afterwards(visit):
    gates, begun = [asyncio.Event() for _ in range(3)], []

    async def look():
        begun.append(None)
        await gates[len(begun) - 1].wait()

    changed = visit.one_at_a_time(look)
    for _ in range(5):
        changed()
    await asyncio.sleep(0)
    assert len(begun) == 1
    for _ in range(5):
        changed()
    gates[0].set()
    gates[1].set()
    await asyncio.gather(*visit.tasks)
    assert len(begun) == 2
    changed()
    gates[2].set()
    await asyncio.gather(*visit.tasks)
    assert len(begun) == 3


async def test_who_could_not_be_asked_is_asked_again(visit):
    asked = []

    async def look():
        asked.append(None)
        raise ConnectionError

    changed = visit.one_at_a_time(look)
    for _ in range(2):
        changed()
        await asyncio.gather(*visit.tasks, return_exceptions=True)
    assert len(asked) == 2


def test_a_page_that_was_closed_while_it_was_built_follows_nothing(visit):
    ended = []
    visit.until_gone(lambda: ended.append("later"))
    assert (len(visit.client.ends), ended) == (1, [])
    visit.client.is_deleted = True
    with pytest.raises(PageClosed):
        visit.until_gone(lambda: ended.append("now"))
    assert ended == ["now"]


@pytest.mark.parametrize(("ages", "behind"), [((), False), ((1.0,), False), ((BEHIND_S + 1, 1.0), True)])
def test_a_browser_that_acknowledges_nothing_is_behind(ages, behind):
    sent = deque((number, time.time() - age, None) for number, age in enumerate(ages))
    assert is_behind(SimpleNamespace(outbox=SimpleNamespace(message_history=sent))) is behind
