"""A whole market in one process, without XMPP: the agents as they are built for a swarm, with their journals, ledger,
reservation books and keys on disk. Stanzas go from hand to hand as text, and time passes only when nothing is left to
do, so a run is the same every time and takes no longer than its work.
"""

import asyncio
import traceback
import xml.etree.ElementTree as ElementTree
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramp.agents.building import PartyBuilder
from ramp.agents.group import end_agent
from ramp.agents.party_agent import PartyAgent
from ramp.agents.roles import UserAgent
from ramp.errors import RampError
from ramp.model.acl import EncodedMessage
from ramp.model.instant import HOUR, MINUTE, Duration, Instant
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol import events as ev
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import QuotaConfig
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder
from ramp.xmpp import wire
from ramp.xmpp.link import TransportSettings
from tests.tiny_market import tiny_market

CONFIG = '[market]\ndomain = "localhost"\n\n' + tiny_market({"alice": 1_000_000})
NAMES = ("directory", "bank", "keeper", "alpha", "beta", "alice")


class HandClock(SystemClock):
    """A clock that the test moves on."""

    def __init__(self) -> None:
        super().__init__()
        self.time: Instant = super().now()

    def now(self) -> Instant:
        return self.time


@dataclass(frozen=True)
class Stanza:
    """One message under way."""

    sender: str
    receiver: str
    body: str
    metadata: dict[str, str]
    thread: str

    def element(self) -> ElementTree.Element:
        content = wire.content_of(EncodedMessage(self.receiver, self.body, self.metadata, self.thread))
        return ElementTree.fromstring(wire.addressed(content, to=self.receiver, sender=self.sender, stanza_id="1"))


class OneProcess:
    """The market; agents that end are built again from what is on disk, as a process of agents does it.

    Attributes:
        agents: by local name; those that are up.
        ended: what agents ended of, in order: (name, error).
        sent: every stanza that an agent has given to the network.
        complaints: the last lines that agents have written to the log about messages.
        faults: tracebacks of bugs that were met inside a conversation.
    """

    def __init__(self, folder: Path, config: str = CONFIG) -> None:
        path = folder / "market.toml"
        path.write_text(config)
        self.config = load_config(path)
        self.state = StateFolder(folder / "state")
        self.clock = HandClock()
        self.agents: dict[str, PartyAgent] = {}
        self.ended: list[tuple[str, BaseException]] = []
        self.sent: list[Stanza] = []
        self.complaints: deque[str] = deque(maxlen=1000)
        self.faults: list[str] = []
        self.keys = KeyStore(self.state.keys)
        self._under_way: deque[Stanza] = deque()

    async def start(self) -> None:
        self.state.prepare()
        now = self.clock.now()
        self.keys.create_ca(now)
        for name, role in self.config.roles().items():
            self.keys.issue(self.config.address(name), role, now)
        for name in NAMES:
            await self.bring_up(name)

    def building(self) -> PartyBuilder:
        quotas = QuotaConfig(messages_per_sender_per_second=10**9, burst=10**9)
        settings = TransportSettings(servers=(("127.0.0.1", 5222),), quotas=quotas)
        return PartyBuilder(self.config, self.state, settings, self.clock)

    async def bring_up(self, name: str) -> PartyAgent | None:
        """Build and start an agent; None if that fails."""
        agent: Any = None
        try:
            agent = self.building().build(name)
            address = self.config.address(name)

            async def send(message: EncodedMessage) -> None:
                stanza = Stanza(address, message.peer, message.body, dict(message.metadata), message.thread)
                self.sent.append(stanza)
                self._under_way.append(stanza)

            agent.send = send
            agent._arm = lambda: None  # the test lets time pass
            agent.complain = lambda sender, text, *arguments: self.complaints.append(text % arguments)
            agent.host.ports.fault = lambda reference, error: self._on_fault(agent, reference, error)
            await agent.setup()
        except Exception as error:
            self.ended.append((name, error))
            await end_agent(agent)
            return None
        self.agents[name] = agent
        return agent

    async def stop(self) -> None:
        for agent in self.agents.values():
            await end_agent(agent)
        self.agents.clear()

    def _on_fault(self, agent: PartyAgent, reference: str, error: Exception) -> None:
        self.faults.append("".join(traceback.format_exception(error)))
        agent.on_fault(reference, error)

    # -- running -------------------------------------------------------------------------------------------------

    async def hand_over(self, agent: PartyAgent, element: ElementTree.Element) -> None:
        """Let an agent take in one stanza, the way that it comes from its stream."""
        taken: list[Any] = []
        agent.dispatch = taken.append  # type: ignore[method-assign]
        agent._arrived(element)
        for message in taken:
            await agent.carry(message)

    async def run(self, until: Callable[[], bool], limit: Duration = 2 * HOUR, *, revive: bool = True) -> bool:
        """Deliver and let time pass until a condition holds; whether it came to hold within the time."""
        end = self.clock.time + limit
        while not until():
            if self._under_way:
                stanza = self._under_way.popleft()
                agent = self.agents.get(stanza.receiver.partition("@")[0])
                if agent is not None:
                    with suppress(RampError):
                        await self.hand_over(agent, stanza.element())
            elif not await self._pass_time(end):
                return False
            await self._bury(revive)
        return True

    async def _pass_time(self, end: Instant) -> bool:
        due = [agent.host.deadline for agent in self.agents.values() if agent.host.deadline is not None]
        if not due or min(due) > end:
            return False
        self.clock.time = max(self.clock.time + 1, min(due))
        for agent in list(self.agents.values()):
            await agent._on_alarm()
        return True

    async def _bury(self, revive: bool) -> None:
        for name, agent in list(self.agents.items()):
            failure = agent.host.failure or agent._failure
            if failure is not None:
                self.ended.append((name, failure))
                await end_agent(agent)
                del self.agents[name]
        for name in NAMES if revive else ():
            if name not in self.agents:
                self.clock.time += 500_000
                await self.bring_up(name)

    # -- a purchase ----------------------------------------------------------------------------------------------

    @property
    def alice(self) -> Any:
        agent = self.agents.get("alice")
        assert agent is None or isinstance(agent, UserAgent)
        return agent.party if agent is not None else None

    def request(self, units: int = 2, cores: int = 40) -> RequestForQuotation:
        """Units that need a machine each."""
        start = self.clock.now() + 30 * MINUTE
        one = (RequestUnit(number, 70, start + HOUR, TotalCores(cores), start, HOUR) for number in range(1, units + 1))
        return RequestForQuotation(tuple(one))

    async def submit(self, request_id: str, request: RequestForQuotation) -> None:
        options = ev.AuctionOptions(rounds=1)
        agent = self.agents["alice"]
        assert isinstance(agent, UserAgent)
        with suppress(RampError):
            await agent.command(ev.RequestSubmitted(request_id, request, options))

    def outcome(self, request_id: str) -> Any:
        purchase = self.alice.purchases.get(request_id) if self.alice is not None else None
        return purchase.outcome if purchase is not None else None


def in_one_process(folder: Path, scenario: Callable[[OneProcess], Any], config: str = CONFIG) -> Any:
    """Run a scenario (a coroutine function of the market) to its end."""

    async def whole() -> Any:
        market = OneProcess(folder, config)
        await market.start()
        try:
            return await scenario(market)
        finally:
            await market.stop()

    return asyncio.run(whole())
