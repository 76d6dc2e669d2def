"""Coroutines run for a thread that waits, with its callbacks and Ctrl-C."""

import asyncio
import signal
import threading

import pytest

from ramp.client.market import call, iterate


async def calling(callback, result="done"):
    await asyncio.sleep(0)
    return callback(threading.get_ident()) or result


def test_callbacks_are_called_in_the_thread_that_waits():
    seen = []
    assert call(calling, lambda loop: seen.append((loop, threading.get_ident())), result="bought") == "bought"
    ((loop, here),) = seen
    assert loop != here == threading.get_ident()


def test_what_a_callback_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        call(calling, lambda _: 1 // 0)


def test_a_thread_with_a_running_loop_may_wait_as_in_a_notebook():
    async def cell():
        return call(calling, lambda _: None)

    assert asyncio.run(cell()) == "done"


async def stubborn(ready):
    try:
        ready()
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "bought all the same"


async def waiting(ready):
    ready()
    await asyncio.Event().wait()


@pytest.mark.parametrize("at_once", [True, False], ids=["in a callback", "while it waits"])
def test_ctrl_c_cancels(at_once):
    def interrupt():
        if at_once:
            signal.raise_signal(signal.SIGINT)
        else:
            main = threading.main_thread().ident
            threading.Thread(target=signal.pthread_kill, args=(main, signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        call(waiting, interrupt)
    assert call(stubborn, interrupt) == "bought all the same"


def test_an_iterator_that_is_left_ends_its_generator():
    ended = []

    async def counting():
        try:
            for number in range(10):
                yield number
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    found = iterate(counting)
    assert [next(found), next(found)] == [0, 1]
    found.close()
    assert ended == [True]
    assert list(iterate(counting)) == [*range(10)]
