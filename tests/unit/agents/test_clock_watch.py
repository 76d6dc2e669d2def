"""How often an agent compares its clock with the bank's: less and less often while nobody answers."""

import asyncio
import contextlib

from ramp.agents.clock_watch import ComparingAgent, next_pause_s
from ramp.protocol.progress import ClockCompared


def test_the_pause_doubles_up_to_a_minute_and_an_answer_shortens_it_again():
    pauses, pause_s = [], 5.0
    for answered in (False, False, False, False, False, True):
        pause_s = next_pause_s(pause_s, answered=answered)
        pauses.append(pause_s)
    assert pauses == [10.0, 20.0, 40.0, 60.0, 60.0, 5.0]


class Comparing(ComparingAgent):
    """Asks a bank that answers the questions with the given numbers only; its pauses pass at once."""

    def __init__(self, answered):
        self.jid = "curie@localhost"
        self.compared, self.told, self._fresh, self._answered = None, lambda _: None, False, True
        self._ids = iter(range(100))
        self._at_once = asyncio.Event()
        self._payments_known = True
        self._answers = answered
        self.asked = 0

    async def command(self, _):
        self.asked += 1
        if self.asked in self._answers:
            self.take_comparison(ClockCompared(0, 0, False))


async def test_pauses_of_an_agent(monkeypatch):
    pauses = []

    class Passing:
        def __init__(self, limit_s):
            pauses.append(limit_s)
            if len(pauses) == 7:
                raise asyncio.CancelledError

        async def __aenter__(self):
            raise TimeoutError

        async def __aexit__(self, *_):
            return False

    monkeypatch.setattr(asyncio, "timeout", Passing)
    agent = Comparing({4})
    agent._ids = type("Ids", (), {"new": lambda *_: "clock-1"})()
    with contextlib.suppress(asyncio.CancelledError):
        await agent._compare()
    # three without an answer; the fourth is answered at once, and from then on the clock is known to be right
    assert pauses == [5.0, 10.0, 20.0, 60.0, 60.0, 60.0, 60.0]
