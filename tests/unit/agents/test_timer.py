"""An agent has one timer: it rings at the next deadline or before, and is not set anew for a later one."""

from types import SimpleNamespace

from ramp.agents.party_agent import PartyAgent
from ramp.model.instant import SECOND


class Waiting(PartyAgent):
    """A party at 10 s with this deadline."""

    def __init__(self, deadline):
        self.host, self.settled = SimpleNamespace(deadline=deadline, tick=lambda _: None), 0
        self._alarm, self._follower, self._stopped = None, None, False

    def now(self):
        return 10 * SECOND

    async def _settle(self):
        self._arm()
        self.settled += 1


async def test_a_timer_is_set_only_to_ring_earlier():
    agent = Waiting(deadline=13 * SECOND)
    agent._arm()
    first = agent._alarm
    agent.host.deadline = 14 * SECOND
    agent._arm()
    assert agent._alarm is first
    agent.host.deadline = 12 * SECOND
    agent._arm()
    assert first.cancelled()
    assert agent._alarm.when() < first.when()
    second = agent._alarm
    agent.host.deadline = None
    agent._ring()
    await agent._alarm_task
    assert agent.settled == 1
    assert agent._alarm.when() > second.when(), "with no deadline it looks at the clock again later"
    agent._alarm.cancel()


async def test_a_stopped_agent_sets_no_timer():
    agent = Waiting(deadline=None)
    agent._stopped = True
    agent._arm()
    assert agent._alarm is None
